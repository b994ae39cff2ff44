import json

import numpy as np
import polars as pl
import pytest
from made_up_judges import draw_panel, gold_of

import annotrace as at
from annotrace.errors import InputError
from annotrace.judges import JudgePanel, evaluate

ACCURACIES = [0.9, 0.8, 0.7, 0.7]


@pytest.fixture(scope="module")
def drawn():
    return draw_panel(ACCURACIES, 500, shared=0.3, names=["gpt/a", "gpt/b", "qwen", "llama"])


def test_against_gold(drawn):
    table, truth = drawn
    panel = evaluate(table, gold=gold_of(table, truth, 120))
    assert isinstance(panel, JudgePanel)
    assert panel.n_gold == 120
    by_name = {row.judge: row for row in panel.rows}
    for name, right in zip(["gpt/a", "gpt/b", "qwen", "llama"], ACCURACIES, strict=True):
        row = by_name[name]
        assert row.n_gold == 120
        assert row.accuracy.low - 0.03 < right < row.accuracy.high + 0.03
        assert not row.people.is_known
        assert row.may_replace is None
    assert panel.counts.sum() == 4 * 120
    assert {share.source for share in panel.shares} == {"panel", *by_name}
    assert panel.dependence.correlation == pytest.approx(0.3, abs=0.15)
    assert panel.people_together is None


def test_the_same_seed_gives_the_same_result(drawn):
    table, truth = drawn
    gold = gold_of(table, truth, 60)
    one, same = (evaluate(table, gold=gold, random_state=3).as_dict() for _ in range(2))
    assert one == same


def test_against_people_without_gold(drawn):
    table, _ = drawn
    kind = {"gpt/a": "person", "gpt/b": "person", "qwen": "llm", "llama": "llm"}
    panel = evaluate(table, kind=kind, epsilon=0.3)
    assert [row.judge for row in panel.rows] == ["qwen", "llama"]
    wide, names = table.to_wide(), table.annotators.tolist()
    ann, bob, qwen = (wide[:, names.index(name)] for name in ("gpt/a", "gpt/b", "qwen"))
    assert panel.people_together.share.value == pytest.approx((ann == bob).mean())
    expected = ((qwen == ann).mean() + (qwen == bob).mean()) / 2
    assert panel.rows[0].people.value == pytest.approx(expected)
    assert {each.person for each in panel.comparisons} == {"gpt/a", "gpt/b"}
    assert panel.panel is None
    assert panel.n_gold == 0
    assert panel.epsilon == 0.3


def test_people_do_not_vote_in_the_panel(drawn):
    table, truth = drawn
    kind = dict.fromkeys(["gpt/b", "qwen", "llama"], "llm") | {"gpt/a": "person"}
    panel = evaluate(table, gold=gold_of(table, truth, 100), kind=kind)
    assert panel.panel.best_judge == "gpt/b"
    assert len(panel.panel.contributions) == 3


def test_over_time_and_by_model(drawn):
    table, truth = drawn
    time = {str(name): k // 250 for k, name in enumerate(table.items)}
    panel = evaluate(table, gold=gold_of(table, truth, 500), time=time, model_of="/")
    assert len(panel.period_rows) == 8
    first = next(row for row in panel.period_rows if row.judge == "gpt/a")
    column = table.annotators.tolist().index("gpt/a")
    expected = (table.to_wide()[:250, column] == truth[:250]).mean()
    assert (first.period, first.agreement.value) == ("0", pytest.approx(expected))
    assert {row.model for row in panel.model_rows} == {"gpt", "qwen", "llama"}


def test_over_time_without_gold_judges_are_compared_with_people_or_each_other(drawn):
    table, _ = drawn
    time = {str(name): k // 250 for k, name in enumerate(table.items)}
    wide, names = table.to_wide()[:250], table.annotators.tolist()
    qwen = wide[:, names.index("qwen")]
    rest = [name for name in names if name != "qwen"]
    for kind, others in (
        (None, rest),
        ({name: "person" if name == "gpt/a" else "llm" for name in names}, ["gpt/a"]),
    ):
        panel = evaluate(table, time=time, kind=kind)
        first = next(row for row in panel.period_rows if row.judge == "qwen")
        expected = np.mean([(qwen == wide[:, names.index(name)]).mean() for name in others])
        assert first.agreement.value == pytest.approx(expected)


def test_frames_are_of_the_library_of_the_labels(drawn):
    pd = pytest.importorskip("pandas")
    table, truth = drawn
    long = table.to_frame()
    given = pd.DataFrame(long.to_dict(as_series=False))
    panel = evaluate(at.LabelTable.from_long(given), gold=gold_of(table, truth, 50))
    assert isinstance(panel.judges, pd.DataFrame)
    assert isinstance(evaluate(table).judges, pl.DataFrame)


def test_odd_panels():
    """One judge, one gold item, one item; a judge without labels."""
    one = at.LabelTable.from_codes([0], [0], [0], n_annotators=2, n_classes=2)
    for gold in (None, {0: 1}):
        panel = evaluate(one, gold=gold)
        assert len(panel.rows) == 2
        assert str(panel)
        assert panel.frames()
    assert not panel.rows[1].accuracy.is_known


@pytest.mark.parametrize("seed", range(20))
def test_small_random_panels(seed):
    """Labels that are few, repeated or missing, with gold, people and times as they come."""
    rng = np.random.default_rng(seed)
    n_items, n_annotators, n_classes = rng.integers(1, 12), rng.integers(1, 6), rng.integers(1, 5)
    table = at.LabelTable.from_codes(
        rng.integers(n_items, size=30),
        np.append(0, rng.integers(n_annotators, size=29)),
        rng.integers(n_classes, size=30),
        n_items=int(n_items),
        n_annotators=int(n_annotators),
        n_classes=int(n_classes),
    )
    panel = evaluate(
        table,
        gold={k: int(rng.integers(n_classes)) for k in range(n_items) if rng.random() < 0.5},
        kind={k: "person" if k and rng.random() < 0.4 else "llm" for k in range(n_annotators)},
        time={k: int(rng.integers(4)) for k in range(n_items)},
        model_of={k: k % 2 for k in range(n_annotators)},
        graded=True,
    )
    json.dumps(panel.as_dict(), allow_nan=False)
    for row in panel.rows:
        for each in (row.accuracy, row.people):
            assert not each.is_known or 0 <= each.low <= each.value <= each.high <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1.0}, "`epsilon` to be at least 0 and below 1, but got 1.0"),
        ({"gold": {"nothing": 0}}, "`gold` has items 'nothing'"),
        ({"kind": {"gpt/a": "robot"}}, "but got 'robot'"),
    ],
)
def test_wrong_input(drawn, options, message):
    with pytest.raises(InputError, match=message):
        evaluate(drawn[0], **options)


def test_anything_but_a_table_with_labels_is_refused():
    with pytest.raises(InputError, match="to be a LabelTable, but got list"):
        evaluate([[0, 1]])
    one = at.LabelTable.from_codes([0], [0], [0], n_annotators=2, n_classes=2)
    with pytest.raises(InputError, match="all labels are by people"):
        evaluate(one, kind={0: "person", 1: "llm"})
    empty = at.LabelTable.from_codes([], [], [], n_items=1, n_annotators=1, n_classes=2)
    with pytest.raises(InputError, match="it has none"):
        evaluate(empty)
