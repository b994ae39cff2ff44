"""Damage to saved runs, with checksums corrected: flipped bits, hostile values, odd tensors."""

import copy
import hashlib
import json
import os
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load, save

import annotrace as at

EXAMPLES = int(os.environ.get("ANNOTRACE_FUZZ_EXAMPLES", "300"))
VALUES = [
    None, -1, 0, 1, 2.5, 1e30, 10**18, 10**39, True, "", "x", "\ud800", "../../etc/passwd",
    "x" * 10**5, [], {}, [[]], [1, 2], {"a": 1}, [None] * 1000, ["a"] * 3,
    json.loads("[" * 200 + "]" * 200),
]  # fmt: skip
TENSORS = {
    "NaN": lambda t: torch.full_like(t.double(), torch.nan).to(t.dtype),
    "infinite": lambda t: torch.full_like(t.double(), torch.inf).to(t.dtype),
    "times 3": lambda t: t * 3,
    "negative": lambda t: -1 - t.to(torch.int64) if not t.is_floating_point() else -t,
    "huge": lambda t: t * 1e30 if t.is_floating_point() else t.long() + 10**9,
    "tiny": lambda t: t * 1e-30 if t.is_floating_point() else t * 0,
    "longer": lambda t: torch.cat([t.reshape(-1, *t.shape[1:]), t.reshape(-1, *t.shape[1:])]),
    "shorter": lambda t: t[:-1] if t.dim() else t.reshape(1),
    "empty": lambda t: t[:0] if t.dim() else t.reshape(1)[:0],
    "flat": lambda t: t.reshape(-1),
    "deeper": lambda t: t[None],
    "half": lambda t: t.half(),
    "bfloat16": lambda t: t.bfloat16(),
    "float64": lambda t: t.double(),
    "bool": lambda t: t.bool(),
    "uint8": lambda t: t.to(torch.uint8),
}


def pack(names):
    """Return a vocabulary as a run stores it."""
    return torch.frombuffer(bytearray(json.dumps(names).encode()), dtype=torch.uint8)


class Saved:
    """The two files of a run, in memory."""

    def __init__(self, folder):
        self.model = (Path(folder) / "model.safetensors").read_bytes()
        self.text = (Path(folder) / "run.json").read_bytes()

    def write(self, folder, *, model=None, text=None):
        """Write the run; the checksum is that of the model unless the text is given as bytes."""
        model = self.model if model is None else model
        if not isinstance(text, bytes):
            described = json.loads(self.text) if text is None else text
            if isinstance(described, dict) and "sha256" in described and model is not self.model:
                described["sha256"] = hashlib.sha256(model).hexdigest()
            text = json.dumps(described).encode()
        (folder / "model.safetensors").write_bytes(model)
        (folder / "run.json").write_bytes(text)


def damage_bytes(content, rng):
    """Flip one to three bits, or cut or lengthen; return what was done and the content."""
    damaged = bytearray(content)
    kind = rng.choice(["flip", "flip", "flip", "cut", "insert"])
    place = int(rng.integers(len(content)))
    if kind == "flip":
        for at_byte in [place, *rng.integers(len(content), size=rng.integers(3))]:
            damaged[at_byte] ^= 1 << int(rng.integers(8))
    elif kind == "cut":
        del damaged[place:]
    else:
        damaged[place:place] = rng.bytes(int(rng.integers(1, 9)))
    return f"{kind} at {place}", bytes(damaged)


def _places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(child, (*path, key))


def damage_json(described, rng):
    """Replace, delete or add one value; return what was done and the description."""
    described = copy.deepcopy(described)
    places = [path for path in _places(described) if path and path[0] != "diagnosis"]
    *path, key = places[rng.integers(len(places))]
    parent = described
    for step in path:
        parent = parent[step]
    kind = rng.choice(["replace", "replace", "replace", "delete", "add"])
    if kind == "delete":
        del parent[key]
    elif kind == "add" and isinstance(parent, dict):
        key = str(rng.choice(["checkpoint", "device", "predict_", "result_", "x_", "__class__"]))
        parent[key] = "/tmp/anything"
    else:
        value = VALUES[rng.integers(len(VALUES))]
        parent[key] = value
        return f"{[*path, key]} = {str(value)[:40]}", described
    return f"{kind} {[*path, key]}", described


def damage_tensors(content, rng):
    """Change, remove or add one tensor; return what was done and the content."""
    tensors = load(content)
    name = sorted(tensors)[rng.integers(len(tensors))]
    kind = str(rng.choice([*TENSORS, "missing", "extra", "swapped"]))
    if kind == "missing":
        del tensors[name]
    elif kind == "extra":
        tensors[str(rng.choice(["x", "learned.predict", "result.x", "network.x", "labels."]))] = (
            torch.zeros(3)
        )
    elif kind == "swapped":
        other = sorted(tensors)[rng.integers(len(tensors))]
        tensors[name], tensors[other] = tensors[other].clone(), tensors[name].clone()
    else:
        tensors[name] = TENSORS[kind](tensors[name]).contiguous()
    return f"{name} {kind}", save(tensors)


def damage(saved, folder, rng):
    """Write one damaged run to a folder; return what was done."""
    kind = rng.choice(["model bytes", "run.json bytes", "run.json", "tensors"])
    if kind == "model bytes":
        done, content = damage_bytes(saved.model, rng)
        saved.write(folder, model=content)
    elif kind == "run.json bytes":
        done, content = damage_bytes(saved.text, rng)
        saved.write(folder, text=content)
    elif kind == "run.json":
        done, described = damage_json(json.loads(saved.text), rng)
        saved.write(folder, text=described)
    else:
        done, content = damage_tensors(saved.model, rng)
        saved.write(folder, model=content)
    return f"{kind}: {done}"


def check_usable(folder, X):
    """Load a run and use all of it; whatever is returned must be valid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = at.load(folder, device="cpu")
        found = [model.posterior_, model.confidence_, model.result_.prior]
        model.result_.table.votes()
        if model.result_.annotator_model is not None:
            found += [model.confusion_, model.skill_]
            assert len(model.annotators_) == model.table_.n_annotators
        if model.result_.models_annotators:
            assert model.diagnosis_.verdict in ("identified", "weak", "not identified")
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(X)
            np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-4)
            found.append(probabilities)
        else:
            assert len(model.predict()) == model.table_.n_items
        assert all(np.isfinite(each).all() for each in found)
        np.testing.assert_allclose(model.posterior_.sum(1), 1, atol=1e-3)
