import json

import pytest
from made_up_judges import draw_panel, gold_of

from annotrace.errors import RunError
from annotrace.judges import evaluate
from annotrace.judges.saving import FILES, save_panel
from annotrace.run_folder import locked


@pytest.fixture(scope="module")
def drawn():
    return draw_panel([0.9, 0.7], 100, names=["=1+1", "@gpt"])


def test_files_of_an_earlier_evaluation_do_not_stay(drawn, tmp_path):
    table, truth = drawn
    (tmp_path / "mine.txt").write_text("stays")
    save_panel(evaluate(table, gold=gold_of(table, truth, 50)), tmp_path)
    assert (tmp_path / "prevalence.csv").exists()
    (tmp_path / "judges.html").write_text("old")
    save_panel(evaluate(table), tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"judges.csv", "judges.json", "mine.txt"}
    assert json.loads((tmp_path / "judges.json").read_text())["n_gold"] == 0


def test_every_file_is_listed(drawn, tmp_path):
    table, truth = drawn
    time = {str(name): k % 2 for k, name in enumerate(table.items)}
    save_panel(evaluate(table, gold=gold_of(table, truth, 50), time=time, model_of="/"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} <= set(FILES)


def test_names_that_look_like_formulas_are_guarded(drawn, tmp_path):
    panel = evaluate(drawn[0])
    save_panel(panel, tmp_path)
    assert (tmp_path / "judges.csv").read_text().splitlines()[1].startswith("'=1+1,")
    save_panel(panel, tmp_path, raw=True)
    assert (tmp_path / "judges.csv").read_text().splitlines()[1].startswith("=1+1,")


def test_one_writer_at_a_time(drawn, tmp_path):
    with locked(tmp_path), pytest.raises(RunError, match="is being written"):
        save_panel(evaluate(drawn[0]), tmp_path)
