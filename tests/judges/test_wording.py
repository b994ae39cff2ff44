import pytest
from made_up_judges import draw_panel, gold_of

from annotrace.judges import evaluate
from annotrace.judges.drift import Drift
from annotrace.judges.estimates import UNKNOWN, Estimate
from annotrace.judges.models import ModelRuns
from annotrace.judges.wording import describe_drift, describe_model, listed, with_interval


def test_a_panel_that_is_better_than_its_members():
    table, truth = draw_panel([0.75] * 7, 400)
    text = str(evaluate(table, gold=gold_of(table, truth, 300)))
    assert "7 judges, 400 items, 300 gold items." in text
    assert "The vote is significantly better than its best member" in text
    assert "Class 0:" in text
    assert "(Rogan-Gladen)" in text


def test_a_panel_that_one_member_beats():
    table, truth = draw_panel([0.95, *[0.65] * 6], 400, shared=0.8)
    text = str(evaluate(table, gold=gold_of(table, truth, 300)))
    assert "The vote is significantly worse than its best member (judge-0)" in text
    assert "as good as all 7, within noise: 1 judge (judge-0)." in text
    assert "7.0 labels per item count as about" in text


def test_gold_that_is_no_random_sample():
    table, truth = draw_panel([0.9, 0.8, 0.8], 300)
    ones = {str(table.items[k]): 1 for k in range(300) if truth[k] == 1}
    text = str(evaluate(table, gold=dict(list(ones.items())[:60])))
    assert "Gold items are not a random sample of all items: class" in text


def test_people():
    table, _ = draw_panel([0.9, 0.9, 0.9, 0.9, 0.3], 100, names=["a", "b", "c", "gpt", "bad"])
    kind = dict.fromkeys("abc", "person") | {"gpt": "llm", "bad": "llm"}
    text = str(evaluate(table, kind=kind))
    assert "Two people agree on 0." in text
    assert "Of the judges gpt agrees best with people" in text
    assert "(alternative annotator test, epsilon 0.2): gpt." in text
    del kind["gpt"]
    text = str(evaluate(table.select_annotators([0, 1, 2, 4]), kind=kind))
    assert "(alternative annotator test, epsilon 0.2): no judge." in text


@pytest.mark.parametrize(
    ("estimate", "signed", "text"),
    [
        (Estimate(0.5, 0.25, 0.75), False, "0.500 (0.250 to 0.750)"),
        (Estimate(0.01, -0.02, 0.04), True, "+0.010 (-0.020 to +0.040)"),
        (UNKNOWN, False, "unknown"),
    ],
)
def test_intervals(estimate, signed, text):
    assert with_interval(estimate, signed=signed) == text


def test_lists_are_cut():
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f and 2 more"
    assert listed([1]) == "1"


def test_models_and_drift():
    runs = ModelRuns("gpt", ("a", "b"), Estimate(0.9, 0.8, 1.0), Estimate(0.7, 0.6, 0.8), 1.25)
    assert describe_model(runs).endswith("; they count as about 1.2 independent votes.")
    assert describe_model(runs._replace(runs=("a",))) == "Model gpt: one run."
    drift = Drift("gpt", -0.125, 0.001, True)
    assert describe_drift(drift).startswith("gpt becomes worse over time: -0.125")
