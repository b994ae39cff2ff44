import gc

import numpy as np
import pytest
import soak
import torch


def samples(megabytes, **counts):
    fixed = dict.fromkeys(soak.ALLOWED_GROWTH, 10.0) | counts
    return [fixed | {"megabytes": float(value)} for value in megabytes]


def growing(found):
    return [name for name in soak.ALLOWED_GROWTH if not found[name]["flat"]]


def test_noise_and_a_warm_up_are_no_growth():
    noisy = 500 + np.random.default_rng(0).normal(0, 10, 120)
    noisy[:20] = np.linspace(200, 500, 20)
    noisy[-1] = 900
    assert growing(soak.judge(samples(noisy))) == []


@pytest.mark.parametrize(("per_round", "grows"), [(0.2, []), (1.0, ["megabytes"])])
def test_slow_growth_counts_from_five_percent(per_round, grows):
    assert growing(soak.judge(samples(500 + per_round * np.arange(120)))) == grows


def test_a_single_open_file_more_is_growth():
    found = samples([500] * 60)
    for sample in found[30:]:
        sample["files"] += 1
    assert growing(soak.judge(found)) == ["files"]


def test_counts_that_begin_at_zero():
    found = samples([500] * 60, tensors=0.0)
    assert growing(soak.judge(found)) == []
    found[-1]["tensors"] = 1.0
    assert growing(soak.judge(found)) == []
    for sample in found[40:]:
        sample["tensors"] = 1.0
    assert growing(soak.judge(found)) == ["tensors"]


@pytest.fixture
def quick(monkeypatch):
    """Twelve rounds of the quickest model; what exists already is not examined again and again."""
    monkeypatch.setattr(soak, "MODELS", [("aggregation", "majority")])
    monkeypatch.setattr(soak, "USES", ())
    monkeypatch.setattr(soak, "FEWEST_ROUNDS", 12)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("quick")
def test_without_a_leak_nothing_grows():
    record = soak.soak(0, seed=0)
    assert growing(record) == []
    assert record["rounds"] == 12


@pytest.mark.usefixtures("quick")
def test_leaks_are_found(monkeypatch, tmp_path):
    kept = []

    def leak(model, crowd):
        kept.append((torch.ones(1), (tmp_path / "labels.csv").open("w")))

    monkeypatch.setattr(soak, "USES", (leak,))
    assert {"megabytes", "tensors", "files"} <= set(growing(soak.soak(0, seed=0, leak=20)))
    for _, file in kept:
        file.close()
