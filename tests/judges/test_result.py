import json

import numpy as np
import polars as pl
import pytest
from made_up_judges import draw_panel, gold_of

from annotrace.judges import evaluate


@pytest.fixture(scope="module")
def panel():
    table, truth = draw_panel([0.9, 0.7, 0.7], 300, names=["gpt/a", "gpt/b", "qwen"])
    time = {str(name): k % 3 for k, name in enumerate(table.items)}
    gold = gold_of(table, truth, 80)
    kind = {"gpt/a": "llm", "gpt/b": "llm", "qwen": "person"}
    return evaluate(table, gold=gold, kind=kind, time=time, model_of="/")


def test_every_judge_has_a_row(panel):
    assert panel.judges["judge"].to_list() == ["gpt/a", "gpt/b"]
    row = panel.judges.row(0, named=True)
    assert row["accuracy_low"] < row["accuracy"] < row["accuracy_high"]
    assert (row["n_gold"], row["n_labels"]) == (80, 300)
    assert panel.class_rates.shape == (4, 10)
    assert panel.prevalence.shape[0] == 6


def test_frames_by_name(panel):
    assert list(panel.frames()) == [
        *("judges", "rates", "panels", "prevalence", "people"),
        *("periods", "drift", "models"),
    ]


def test_everything_is_json(panel):
    found = json.loads(json.dumps(panel.as_dict()))
    assert found["n_gold"] == 80
    assert found["panel"]["best_judge"] == "gpt/a"
    assert found["judges_rows"][0]["judge"] == "gpt/a"
    assert found["dependence"]["n_votes"] == 2
    assert "NaN" not in json.dumps(panel.as_dict())


def test_it_is_short_in_a_console(panel):
    assert repr(panel) == "JudgePanel(2 judges, 300 items, 80 gold items)"


def test_saving(panel, tmp_path):
    panel.save(tmp_path / "judges")
    written = pl.read_csv(tmp_path / "judges" / "judges.csv")
    assert written["accuracy"].to_list() == pytest.approx(
        panel.judges["accuracy"].to_list(), abs=1e-5
    )
    assert json.loads((tmp_path / "judges" / "judges.json").read_text())["n_gold"] == 80
    with np.load(tmp_path / "judges" / "confusion.npz") as saved:
        np.testing.assert_array_equal(saved["confusion"], panel.counts)
