"""Figures are checked by what is drawn: marks, bars and text."""

import matplotlib
import numpy as np
import pytest
from matplotlib._pylab_helpers import Gcf
from matplotlib.figure import Figure

import annotrace as at
from annotrace.errors import InputError

HOSTILE = ["$x^{2}$", "$\\frac{1}{", "<b>bo</b>", "a_b", "50 %", "x" * 500]


@pytest.fixture(scope="module")
def table():
    truth = np.arange(240) % 3
    crowd = at.simulate.hammer_spammers(6, 3, skill=0.8, random_state=0)
    crowd[4] = 1 / 3
    crowd[5, 1] = [0.1, 0.2, 0.7]
    codes = at.simulate.simulate_labels(truth, crowd, labels_per_item=4, random_state=0)
    classes = ["cat", "dog", "$\\hat{x}$"]
    return at.LabelTable.from_long(
        {
            "item": [f"item {k}" for k in codes.item.tolist()],
            "annotator": [HOSTILE[k] for k in codes.annotator.tolist()],
            "label": [classes[k] for k in codes.label.tolist()],
        }
    )


@pytest.fixture(scope="module")
def model(table):
    return at.aggregation.make("dawid-skene").fit(table)


@pytest.fixture(scope="module")
def joint():
    truth = np.arange(120) % 3
    X = at.simulate.gaussian_features(truth, 3, accuracy=0.9, random_state=0)
    crowd = at.simulate.hammer_spammers(4, 3, skill=0.7, random_state=0)
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=3, random_state=0)
    return at.make("gem", epochs=4, random_state=0).fit(X, table)


def ticks(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def draw(ax):
    """Render the figure: a formula that matplotlib cannot parse would raise here."""
    ax.figure.canvas.draw()
    return ax


def test_the_matrix_of_an_annotator_is_drawn_true_down_reported_across(model):
    ax = draw(at.plots.confusion(model, "a_b"))
    place = model.table_.annotators.tolist().index("a_b")
    np.testing.assert_array_equal(ax.images[0].get_array(), model.confusion_[place])
    assert ticks(ax.yaxis) == ticks(ax.xaxis) == model.table_.classes.tolist()
    assert ax.get_ylabel() == "true class"
    assert ax.get_title(loc="left") == "Annotator a_b"
    n_labels = model.table_.labels_per_annotator()[place]
    assert f"skill {model.skill_[place]:.2f}, {n_labels} labels" in texts(ax)


def test_the_pool_weighs_annotators_by_their_labels(model):
    ax = at.plots.confusion(model)
    n_labels = model.table_.labels_per_annotator()
    pool = (n_labels[:, None, None] * model.confusion_).sum(0) / n_labels.sum()
    np.testing.assert_allclose(ax.images[0].get_array(), pool)
    assert f"{100 * pool[0, 1]:.0f}" in texts(ax)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_no_formula_and_no_markup(model, name):
    title = draw(at.plots.confusion(model, name)).get_title(loc="left").removeprefix("Annotator ")
    assert title == name if len(name) < 20 else title.endswith("x…")


def test_skills_are_ranked_with_their_intervals(model):
    ax = draw(at.plots.skills(model))
    people = model.annotators_.sort("skill", descending=True)
    assert ticks(ax.yaxis)[:2] == [name[:27] for name in people["annotator"][:2]]
    marks = [line for line in ax.lines if line.get_marker() in ("o", "D")]
    assert [float(line.get_xdata()[0]) for line in marks] == people["skill"].to_list()
    spans = [line for line in ax.lines if len(line.get_xdata()) == 2 and line not in marks][1:]
    assert [tuple(line.get_xdata()) for line in spans] == list(
        zip(people["low"], people["high"], strict=True)
    )


def test_flags_are_reported_by_shape_and_in_words(model):
    ax = at.plots.skills(model)
    people = model.annotators_.sort("skill", descending=True)
    marks = [line.get_marker() for line in ax.lines if line.get_marker() in ("o", "D")]
    assert marks == ["D" if flags else "o" for flags in people["flags"]]
    assert "likely spammer: answers independently of the item" in texts(ax)


def test_of_many_annotators_both_ends_are_shown():
    crowd = at.simulate.hammer_spammers(40, 3, skill=0.7, random_state=0)
    table = at.simulate.simulate_labels(np.arange(90) % 3, crowd, labels_per_item=6, random_state=0)
    ax = at.plots.skills(at.aggregation.make("one-coin").fit(table), top=8)
    assert len(ticks(ax.yaxis)) == 9
    assert ticks(ax.yaxis)[4] == "32 more"


def test_many_classes_have_neither_names_nor_numbers():
    y = np.arange(300) % 60
    crowd = at.simulate.hammer_spammers(4, 60, skill=0.9, random_state=0)
    table = at.simulate.simulate_labels(y, crowd, labels_per_item=3, random_state=0)
    found = at.aggregation.make("one-coin").fit(table)
    ax = draw(at.plots.confusion(found))
    assert ticks(ax.xaxis) == []
    assert len(ax.texts) == 1  # the remark under the title
    shares = [bar.get_width() for bar in at.plots.items(found, top=1).patches]
    assert len(shares) == 8
    assert sum(shares) == pytest.approx(1)


def test_the_curve_of_reliability_is_that_of_the_diagnosis(joint):
    ax = draw(at.plots.reliability(joint.posterior_, joint.table_.truth, n_bins=7))
    curve = at.diagnosis.reliability_curve(joint.posterior_, joint.table_.truth, 7)
    drawn = ax.lines[-1]
    np.testing.assert_array_equal(drawn.get_xdata(), curve.confidence)
    np.testing.assert_array_equal(drawn.get_ydata(), curve.accuracy)
    assert "120 items, 17 or 18 per point" in texts(ax)
    error = at.diagnosis.calibration_error(joint.posterior_, joint.table_.truth, 7)
    assert ax.get_title(loc="left") == f"Calibration error {error:.3f}"


def test_confidence_may_be_given(joint):
    truth = joint.table_.truth
    ax = at.plots.reliability(joint.posterior_, truth, confidence=joint.confidence_)
    curve = at.diagnosis.reliability_curve(joint.posterior_, truth, confidence=joint.confidence_)
    np.testing.assert_array_equal(ax.lines[-1].get_xdata(), curve.confidence)


def test_items_in_most_doubt_come_first_with_their_labels(model):
    ax = draw(at.plots.items(model, top=5))
    doubtful = np.argsort(model.confidence_, kind="stable")[:5]
    assert ticks(ax.yaxis) == model.table_.items[doubtful].tolist()
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(5, 3)
    np.testing.assert_allclose(widths.sum(axis=1), 1)
    estimate = model.posterior_[doubtful].argmax(axis=1)
    np.testing.assert_allclose(widths[np.arange(5), estimate], model.confidence_[doubtful])
    table = model.table_
    own = table.classes[table.label[table.item == doubtful[0]]].tolist()
    output = next(text for text in texts(ax) if "," in text)
    assert sorted({part.split(" x ")[0] for part in output.split(", ")}) == sorted(set(own))


def test_a_loaded_run_draws_the_same(joint, tmp_path):
    joint.save(tmp_path / "run")
    loaded = at.load(tmp_path / "run")
    for kind in (at.plots.confusion, at.plots.skills, at.plots.items):
        assert texts(kind(loaded)) == texts(kind(joint))


def test_given_axes_are_drawn_on_and_given_back(model, joint):
    grid = Figure(layout="constrained").subplots(2, 2)
    assert at.plots.confusion(model, ax=grid[0, 0]) is grid[0, 0]
    assert at.plots.skills(model, ax=grid[0, 1]) is grid[0, 1]
    assert at.plots.items(model, ax=grid[1, 0]) is grid[1, 0]
    truth = joint.table_.truth
    assert at.plots.reliability(joint.posterior_, truth, ax=grid[1, 1]) is grid[1, 1]
    draw(grid[0, 0])


def test_nothing_global_is_touched(model):
    before = dict(matplotlib.rcParams)
    for kind in (at.plots.confusion, at.plots.skills, at.plots.items):
        draw(kind(model))
    assert dict(matplotlib.rcParams) == before
    assert Gcf.get_all_fig_managers() == []


def test_what_cannot_be_drawn_is_said(model):
    with pytest.raises(InputError, match="no annotator 'nobody'"):
        at.plots.confusion(model, "nobody")
    with pytest.raises(InputError, match="`top` to be at least 2"):
        at.plots.skills(model, top=1)
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    with pytest.raises(InputError, match="Vanilla does not model annotators"):
        at.plots.confusion(at.make("vanilla", epochs=1, random_state=0).fit(X, y))
