"""A loaded run has everything that a fitted model has; a hostile one is rejected at no cost."""

import json
import os
import re
import subprocess
import sys
import time

import numpy as np
import pytest
from crowds import NAMES, blobs, quick_params
from damage import EXAMPLES, Saved, check_usable, damage, pack
from references import fit_quietly
from safetensors.torch import load, save

import annotrace as at
from annotrace import aggregation
from annotrace.errors import AnnotraceError, DivergenceError, RunError
from annotrace.methods.registry import METHODS


def documented(method):
    """Names of learned attributes, from the docstrings of a class and its bases."""
    sections = [
        (kind.__doc__ or "").partition("Attributes\n")[2]
        for kind in METHODS[method].factory.__mro__
    ]
    return set(re.findall(r"\b([a-z]\w*_)\b(?=[^\n]* : )", "\n".join(sections)))


@pytest.mark.parametrize("name", NAMES)
def test_documented_attributes_survive_saving(name, tmp_path):
    X, _, table, confusion = blobs(n_items=80)
    settings = quick_params(name, confusion)
    model = at.make(name, epochs=np.int64(4), random_state=3, **settings).fit(X, table)
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    learned = {attribute for attribute in documented(name) if hasattr(model, attribute)}
    assert {"posterior_", "network_", "history_", "table_"} <= learned
    assert {attribute for attribute in learned if not hasattr(loaded, attribute)} == set()
    for attribute in set(vars(model)) & learned:
        before, after = getattr(model, attribute), getattr(loaded, attribute)
        if isinstance(before, dict | int | float | list | np.ndarray):
            np.testing.assert_array_equal(after, before)
            assert np.asarray(after).dtype.kind == np.asarray(before).dtype.kind


@pytest.mark.parametrize("kind", [bool, float, str, int])
def test_classes_come_back_as_they_were(kind, tmp_path):
    X, truth, _, _ = blobs(n_items=60)
    model = at.Vanilla(epochs=1, random_state=0).fit(X, (truth > 0).astype(kind))
    model.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_numpy_parameters_are_kept(tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.Vanilla(epochs=np.int64(2), lr=np.float32(0.5), random_state=0).fit(X, table).save(tmp_path)
    loaded = at.load(tmp_path)
    assert (loaded.epochs, loaded.lr) == (2, 0.5)


@pytest.mark.parametrize("recipe", [at.Recipe(n_init=1, mixup=0.0, repair=False), "default", None])
def test_the_recipe_is_kept(recipe, tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.TraceRegularized(epochs=1, recipe=recipe, random_state=0).fit(X, table).save(tmp_path)
    assert at.load(tmp_path).recipe == recipe


def test_a_method_without_annotators_leaves_no_confusion_of_an_earlier_run(tmp_path):
    X, _, table, _ = blobs(n_items=30)
    at.GeneralizedEM(epochs=4, random_state=0).fit(X, table).save(tmp_path)
    assert (tmp_path / "confusion.npz").exists()
    at.Vanilla(epochs=1, random_state=0).fit(X, table).save(tmp_path)
    assert not (tmp_path / "confusion.npz").exists()
    assert not hasattr(at.load(tmp_path), "confusion_")


def test_a_loaded_classifier_can_be_fitted_again(tmp_path):
    X, _, table, _ = blobs(n_items=60)
    at.GeneralizedEM(epochs=4, random_state=0).fit(X, table).save(tmp_path)
    loaded = at.load(tmp_path)
    network = loaded.network_
    loaded.set_params(warm_start=True).fit(X, table)
    assert loaded.network_ is network


# Runs from strangers


@pytest.fixture(scope="module")
def saved_runs(tmp_path_factory):
    """Small runs of methods and aggregations by name, and rows to predict."""
    X, _, table, confusion = blobs(n_items=40)
    models = {name: aggregation.make(name) for name in ("hierarchical", "glad", "mace", "pooled")}
    for model in models.values():
        fit_quietly(model, table, gold={0: 0}, prior_counts=np.ones((6, 3, 3)))
    for name in ("auto", "trace", "single-cm", "two-stage", "wdn", "vanilla"):
        params = quick_params(name, confusion)
        models[name] = at.make(name, epochs=4, random_state=0, **params).fit(X, table)
    images = at.Vanilla(backbone="cnn", epochs=1, random_state=0)
    models["images"] = images.fit(np.resize(X, (40, 6, 6)), table)
    folder = tmp_path_factory.mktemp("runs")
    for name, model in models.items():
        model.save(folder / name)
    return {name: Saved(folder / name) for name in models}, X


@pytest.mark.parametrize("part", range(4))
def test_a_damaged_run_is_valid_or_one_error(saved_runs, tmp_path, part):
    saved, X = saved_runs
    names = sorted(saved)
    for number in range(part, EXAMPLES, 4):
        name = names[number // 4 % len(names)]
        done = damage(saved[name], tmp_path, np.random.default_rng(number))
        start = time.process_time()
        try:
            check_usable(tmp_path, np.resize(X, (40, 6, 6)) if name == "images" else X)
        except AnnotraceError as error:
            message = str(error)
            if len(message) > 1000:
                raise AssertionError(f"{number}: {name}, {done}: {message}") from error
        except Exception as error:
            raise AssertionError(f"{number}: {name}, {done}") from error
        assert time.process_time() - start < 2, f"{number}: {name}, {done}"


@pytest.mark.parametrize(
    ("name", "part", "changes", "message"),
    [
        ("wdn", "params", {"width": 10**9}, "`network.2.2.weight` to be torch.float32 of shape"),
        ("wdn", "params", {"width": 10**30}, "no network can be built from its parameters"),
        ("auto", "params", {"n_folds": 10**9}, "at most 5, by the number of networks"),
        ("auto", "params", {"n_folds": 4}, "`n_folds` to be at least 5, as in `fold_`"),
        ("trace", "params", {"diagonal": 7}, "`diagonal` to be at least 1 / n_classes"),
        ("trace", "params", {"recipe": {"n_init": 1}}, "it lacks calibrate, mixup, refit, repair"),
        ("vanilla", "params", {"backbone": "resnet50"}, "takes images, but the data are rows"),
        ("vanilla", "params", {"checkpoint": "elsewhere"}, "no parameters 'checkpoint'"),
        ("vanilla", "params", {"magic": 1}, "no parameters 'magic'"),
        ("two-stage", "params", {"aggregate": "../x"}, r"there is no aggregation '\.\./x'"),
        ("vanilla", "learned", {"temperature_": 0}, "`temperature_` to be a number larger than 0"),
        ("vanilla", "learned", {"temperature_": 10**30}, "`temperature_` to be a number larger"),
        ("vanilla", "learned", {"predict_proba": 0}, "unknown fields: 'predict_proba'"),
        ("trace", "learned", {"chosen_": {}}, "`chosen_` to be a dict with the keys lam"),
        ("auto", "learned", {"label_loss_": ["x"]}, "`label_loss_` to be a list whose values"),
    ],
)
def test_parameters_and_attributes_are_checked(saved_runs, tmp_path, name, part, changes, message):
    saved = saved_runs[0][name]
    described = json.loads(saved.text)
    described[part] |= changes
    saved.write(tmp_path, text=described)
    with pytest.raises(RunError, match=f"(?i){message}"):
        at.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_shape": []}, "`input_shape` to be 1 to 4 sizes"),
        ({"input_shape": [10**6, 10**6]}, "`input_shape` to be 1 to 4 sizes whose product"),
        (
            {"input_shape": [3]},
            r"to be torch.float32 of shape \(3,\), but got torch.float32 of shape \(2,\)",
        ),
        ({"feature_names": ["a"]}, "2 names in feature_names, but got 1"),
        ({"feature_names": ["a", "a"]}, "distinct names in feature_names"),
        ({"history": [{"number": 1}]}, "`history` to be a list whose values are each a dict"),
        ({"custom_backbone": True}, "give it as load"),
    ],
)
def test_the_description_of_a_classifier_is_checked(saved_runs, tmp_path, changes, message):
    saved = saved_runs[0]["vanilla"]
    saved.write(tmp_path, text=json.loads(saved.text) | changes)
    with pytest.raises(RunError, match=message):
        at.load(tmp_path)


@pytest.mark.parametrize("name", ["network.2.0.weight", "network.2.2.bias"])
def test_weights_must_be_finite(saved_runs, tmp_path, name):
    saved = saved_runs[0]["vanilla"]
    tensors = load(saved.model)
    tensors[name].view(-1)[0] = np.nan
    saved.write(tmp_path, model=save(tensors))
    with pytest.raises(RunError, match=f"`{name}` to be finite"):
        at.load(tmp_path)


def test_predictions_that_overflow_are_an_error(saved_runs, tmp_path):
    saved, X = saved_runs
    tensors = load(saved["vanilla"].model)
    for name in ("network.2.0.weight", "network.2.2.weight"):
        tensors[name] = tensors[name] * 1e30
    saved["vanilla"].write(tmp_path, model=save(tensors))
    with pytest.raises(DivergenceError, match="NaN or infinity for 40 items"):
        at.load(tmp_path).predict_proba(X)


def hostile_runs(saved, folder):
    """Write runs that would take much memory or time, or never end; return their folders."""

    def write(name, source, model=None, **changes):
        (folder / name).mkdir()
        described = json.loads(saved[source].text)
        params = described["params"] | changes.pop("params", {})
        saved[source].write(
            folder / name, model=model, text=described | changes | {"params": params}
        )
        return folder / name

    many = write("many classes", "pooled")
    tensors = load(saved["pooled"].model)
    tensors["labels.annotators"] = pack(list(range(20_000)))
    tensors["labels.classes"] = pack(list(range(5_000)))
    tensors["result.posterior"] = tensors["result.posterior"].repeat(1, 1667)[:, :5000] * 0
    tensors["result.posterior"][:, 0] = 1
    tensors["result.prior"] = tensors["result.posterior"][0].clone()
    tensors.pop("result.prior_counts", None)
    counts = {"items": 40, "annotators": 20_000, "labels": 80, "classes": 5_000}
    saved["pooled"].write(
        many, model=save(tensors), text=json.loads(saved["pooled"].text) | {"counts": counts}
    )
    write("wide", "wdn", params={"width": 10**12})
    write("folds", "auto", params={"n_folds": 10**12})
    write("large rows", "vanilla", input_shape=[2**13, 2**13])
    write("claims", "trace", model=(10**11).to_bytes(8, "little") + saved["trace"].model[8:])
    for name, text in {"deep": "[" * 10**6, "objects": "[" + "{}," * 5 * 10**6 + "{}]"}.items():
        (write(name, "trace") / "run.json").write_text(text)
    with (write("sparse", "trace") / "model.safetensors").open("ab") as file:
        file.truncate(10**11)
    for name in ("run.json", "model.safetensors"):
        path = write(f"pipe {name}", "trace") / name
        path.unlink()
        os.mkfifo(path)
        path = write(f"device {name}", "trace") / name
        path.unlink()
        path.symlink_to("/dev/zero")
    return sorted(folder.iterdir())


LOAD_ALL = """
import resource, sys, time
import annotrace as at

good, *folders = sys.argv[1:]
at.load(good, device="cpu")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for folder in folders:
    start = time.process_time()
    try:
        at.load(folder, device="cpu")
        print(folder, "was loaded")
    except at.errors.RunError as error:
        seconds = time.process_time() - start
        if seconds > 2 or "\\n" in str(error):
            print(folder, seconds, error)
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if taken > 500:
        print(folder, taken, "MB")
"""


def test_hostile_runs_take_little_time_and_memory(saved_runs, tmp_path):
    saved = saved_runs[0]
    folders = hostile_runs(saved, tmp_path)
    (tmp_path / "good").mkdir()
    saved["trace"].write(tmp_path / "good")
    command = [sys.executable, "-c", LOAD_ALL, tmp_path / "good", *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("", "")
