"""Dawid-Skene with structures of fewer parameters."""

import hashlib
import json
import warnings

import numpy as np
import pytest
import torch
from references import brute_force_posterior, random_table
from safetensors.torch import load_file, save_file
from sklearn.exceptions import ConvergenceWarning

import annotrace as at
from annotrace.aggregation import DawidSkene, structured
from annotrace.crowd.cell_structures import OutcomeStructure
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.mixture_structure import MixtureStructure
from annotrace.errors import InputError, RunError
from annotrace.labels import LabelTable
from annotrace.labels.taxonomy import class_groups

TAXONOMY = {"0": "a", "1": "a", "2": "b", "3": "b"}
NAMES = ["per-class", "low-rank", "taxonomy"]
every = pytest.mark.parametrize("name", NAMES)


def fitted(name, table, gold=None, **params):
    params = {"structure": name, "rank": 2, "taxonomy": TAXONOMY, "random_state": 0} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return at.aggregation.make("dawid-skene", **params).fit(table, gold=gold)


@pytest.fixture
def crowd():
    return random_table(np.random.default_rng(0), 300, 12, 4, labels_each=5, skill=0.6)


@every
def test_no_iteration_lowers_the_objective(crowd, name):
    model = fitted(name, LabelTable.from_codes(*crowd[:3]), max_iter=60, tol=0)
    assert np.diff(model.objective_).min() > -1e-8
    assert model.objective_[-1] > model.objective_[0] + 10


@every
def test_the_posterior_is_that_of_the_matrices(name):
    item, annotator, label, _ = random_table(np.random.default_rng(1), 5, 4, 3, labels_each=3)
    table = LabelTable.from_codes(item, annotator, label)
    model = fitted(name, table, max_iter=3)
    expected, _ = brute_force_posterior(
        item, annotator, label, model.confusion_, model.prior_, n_items=5
    )
    np.testing.assert_allclose(model.posterior_, expected)
    np.testing.assert_allclose(model.confusion_.sum(2), 1)


@every
def test_some_matrices_and_likelihoods_are_those_of_all(crowd, name):
    model = fitted(name, LabelTable.from_codes(*crowd[:3]), max_iter=5).annotator_model_
    everyone = model.matrices()
    some = torch.tensor([7, 0, 7])
    torch.testing.assert_close(model.matrices(some), everyone[some])
    asked = torch.tensor([3, 11]), torch.tensor([2, 0])
    expected = everyone[asked[0], :, asked[1]]
    torch.testing.assert_close(model.log_likelihood(*asked).exp(), expected)
    trace = everyone.diagonal(dim1=1, dim2=2).sum(1).mean()
    torch.testing.assert_close(model.structure.mean_trace(), trace)


def confused_crowd(kind, n_items=3000, n_annotators=20):
    """Four classes; the matrices are of the structure themselves."""
    rng = np.random.default_rng(2)
    skill = rng.uniform(0.4, 0.9, (n_annotators, 4))
    errors = np.array([[0, 0.8, 0.1, 0.1], [0.5, 0, 0.5, 0], [0.2, 0, 0, 0.8], [0.3, 0.4, 0.3, 0]])
    if kind == "taxonomy":
        skill = np.repeat(skill[:, ::2], 2, axis=1)
        errors = np.array([[0, 0.8, 0.1, 0.1], [0.8, 0, 0.1, 0.1]])
        errors = np.concatenate([errors, errors[:, [2, 3, 0, 1]]])
    confusion = (1 - skill)[:, :, None] * errors
    confusion[:, np.arange(4), np.arange(4)] = skill
    if kind == "low-rank":
        archetypes = np.stack([0.9 * np.eye(4) + 0.025, np.full((4, 4), 0.25), errors])
        confusion = np.tensordot(rng.dirichlet([2, 0.6, 0.6], n_annotators), archetypes, 1)
    truth = rng.integers(4, size=n_items)
    item = np.repeat(np.arange(n_items), 6)
    annotator = rng.integers(n_annotators, size=len(item))
    chances = confusion[annotator, truth[item]].cumsum(1)
    label = (rng.random((len(item), 1)) > chances).sum(1).clip(0, 3)
    return LabelTable.from_codes(item, annotator, label), truth, confusion


@every
def test_matrices_of_the_structure_are_found(name):
    table, truth, confusion = confused_crowd(name)
    model = fitted(name, table)
    errors = np.abs(model.confusion_ - confusion)
    assert errors.mean() < 0.02
    assert (model.predict() == truth).mean() > fitted("full", table).posterior_.max(1).mean() - 0.05


@every
def test_with_few_possible_classes_the_result_is_the_same(crowd, name, monkeypatch):
    table = LabelTable.from_codes(*crowd[:3])
    exact = fitted(name, table, max_iter=40)
    monkeypatch.setattr(structured, "FULL_SUPPORT", 0)
    sparse = fitted(name, table, max_iter=40)
    assert (exact.predict() == sparse.predict()).mean() > 0.98
    np.testing.assert_allclose(exact.confusion_, sparse.confusion_, atol=0.06)


@every
def test_it_is_saved_continued_and_clamped_to_gold(crowd, name, tmp_path):
    item, annotator, label, truth = crowd
    first = item < 250
    table = LabelTable.from_codes(item[first], annotator[first], label[first], n_classes=4)
    wrong = {0: int(3 - truth[0])}
    model = fitted(name, table, gold=wrong)
    assert model.predict()[0] == wrong[0]
    model.save(tmp_path)
    loaded = at.load(tmp_path)
    assert loaded.structure_ == name
    np.testing.assert_array_equal(loaded.posterior_, model.posterior_)
    np.testing.assert_allclose(loaded.confusion_, model.confusion_)
    rest = LabelTable.from_codes(item[~first], annotator[~first], label[~first], n_classes=4)
    loaded.partial_fit(rest)
    assert (loaded.predict()[1:] == truth[1:]).mean() > 0.8


def test_auto_prefers_the_structure_that_predicts_labels(tmp_path):
    table, _, _ = confused_crowd("per-class", n_items=400, n_annotators=60)
    model = fitted("auto", table, max_iter=20)
    assert set(model.structure_loss_) == {"full", "pooled", *NAMES}
    assert model.structure_ == min(model.structure_loss_, key=model.structure_loss_.get)
    assert model.structure_loss_["per-class"] < model.structure_loss_["full"] - 0.01
    model.save(tmp_path)
    assert at.load(tmp_path).structure_loss_ == model.structure_loss_


def test_auto_compares_a_taxonomy_of_named_classes():
    table, _, _ = confused_crowd("per-class", n_items=400, n_annotators=60)
    classes = np.array(["cat", "dog", "oak", "elm"])
    named = table.replace(classes=classes)
    tree = {"cat": "animal", "dog": "animal", "oak": "plant", "elm": "plant"}
    model = fitted("auto", named, taxonomy=tree, max_iter=5)
    assert set(model.structure_loss_) == {"full", "pooled", *NAMES}
    assert model.groups_.tolist() == [0, 0, 1, 1]


def test_auto_without_comparable_labels_takes_the_fewest_parameters(crowd):
    single = LabelTable.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1])
    model = DawidSkene(structure="auto").fit(single)
    assert (model.structure_, model.structure_loss_) == ("low-rank", {})


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"structure": "taxonomy"}, "needs a `taxonomy`"),
        ({"structure": "per-class", "one_coin": True}, "'full' with `one_coin`"),
        ({"structure": "taxonomy", "taxonomy": {"x": "y"}}, "none of the 4 classes"),
        ({"structure": "diagonal"}, "Expected `structure`"),
    ],
)
def test_what_cannot_be_is_refused(crowd, params, message):
    with pytest.raises(InputError, match=message):
        DawidSkene(**params).fit(LabelTable.from_codes(*crowd[:3]))


def test_groups_are_read_from_files(tmp_path):
    classes, expected = ["cat", "car", "dog", "sea"], [0, 1, 0, 2]
    tree = {"cat": "animal", "dog": "animal", "car": "vehicle"}
    csv, object_ = tmp_path / "tree.csv", tmp_path / "tree.json"
    csv.write_text("class,parent\n" + "".join(f"{k},{v}\n" for k, v in tree.items()))
    object_.write_text(json.dumps(tree))
    for given in (tree, csv, str(object_)):
        assert class_groups(given, classes).tolist() == expected
    csv.write_text("class,parent\ncat\n")
    with pytest.raises(InputError, match=r"tree\.csv, row 2: expected two columns"):
        class_groups(csv, classes)
    object_.write_text("[]")
    with pytest.raises(InputError, match="json object"):
        class_groups(object_, classes)


def test_a_class_alone_in_its_group_has_no_error_within_it():
    structure = OutcomeStructure.taxonomy(2, torch.tensor([0, 0, 1]))
    np.testing.assert_allclose(structure.matrices().sum(2), 1)
    np.testing.assert_allclose(MixtureStructure(2, 3, 2).matrices().sum(2), 1)


@pytest.mark.parametrize("group", [[0, 0, 1, 1, 1], [0] * 5, [0, 1, 2, 3, 4], None])
@pytest.mark.parametrize("block", [1, 2**22])
def test_log_likelihoods_of_items_are_the_sums_over_their_labels(group, block, monkeypatch):
    monkeypatch.setattr("annotrace.crowd.cell_structures.BLOCK", block)
    rng = np.random.default_rng(0)
    item, annotator, label = (rng.integers(n, size=30) for n in (8, 4, 5))
    table = LabelTable.from_codes(item, annotator, label, n_items=9, n_annotators=4, n_classes=5)
    structure = OutcomeStructure.per_class(4, 5)
    if group:
        structure = OutcomeStructure.taxonomy(4, torch.tensor(group))
    structure.counts += torch.from_numpy(rng.random(structure.counts.shape))
    structure.pattern *= torch.from_numpy(rng.random((5, 5)))
    logs = structure.matrices().log().numpy()[annotator, :, label]
    expected = np.zeros((9, 5))
    np.add.at(expected, item, np.maximum(logs, np.log(1e-30)))
    found = structure.item_log_likelihood(LabelIndex.from_table(table))
    likely = expected > -60
    np.testing.assert_allclose(found.numpy()[likely], expected[likely])


def test_without_an_array_of_matrices_there_are_accuracies(crowd, tmp_path, monkeypatch):
    table = LabelTable.from_codes(*crowd[:3])
    known = fitted("per-class", table, max_iter=5)
    monkeypatch.setattr("annotrace.crowd.result.MAX_CELLS", 12 * 16 - 1)
    monkeypatch.setattr("annotrace.crowd.annotator_model.BLOCK", 48)
    model = fitted("per-class", table, max_iter=5)
    expected = np.einsum("rkk->rk", known.confusion_)
    assert not hasattr(model, "confusion_")
    np.testing.assert_allclose(model.result_.accuracies(), expected)
    np.testing.assert_allclose(model.annotators_["skill"], expected.mean(axis=1))
    np.testing.assert_array_equal(model.posterior_, known.posterior_)
    assert model.confidence_.shape == (300,)
    with pytest.raises(AttributeError, match="too many for an array"):
        model.diagnosis_  # noqa: B018
    model.save(tmp_path)
    with np.load(tmp_path / "confusion.npz") as written:
        np.testing.assert_allclose(written["accuracies"], expected)
        assert "confusion" not in written
    np.testing.assert_array_equal(at.load(tmp_path).posterior_, model.posterior_)


@pytest.mark.parametrize("name", ["per-class", "taxonomy"])
def test_a_run_whose_counts_are_missing_is_refused_before_they_are_made(name, crowd, tmp_path):
    fitted(name, LabelTable.from_codes(*crowd[:3]), max_iter=2).save(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["annotators.structure.counts"] = torch.zeros(1)
    save_file(tensors, tmp_path / "model.safetensors")
    written = (tmp_path / "model.safetensors").read_bytes()
    run = json.loads((tmp_path / "run.json").read_text())
    run["sha256"] = hashlib.sha256(written).hexdigest()
    (tmp_path / "run.json").write_text(json.dumps(run))
    with pytest.raises(RunError, match=r"structure\.counts"):
        at.load(tmp_path)
