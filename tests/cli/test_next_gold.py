import numpy as np
import polars as pl
import pytest


@pytest.fixture
def run(annotrace, tmp_path):
    """A run of 200 items, five annotators, and 40 items of known truth."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    answers = np.where(rng.random((200, 5)) < 0.75, truth[:, None], 1 - truth[:, None])
    rows = [
        f"i{item},p{who},{('cat', 'dog')[answers[item, who]]},"
        + (("cat", "dog")[truth[item]] if item < 40 else "")
        for item in range(200)
        for who in range(5)
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["item,annotator,label,truth", *rows]) + "\n")
    result = annotrace("aggregate", "labels.csv", "--learn-truth", "--out", "run", "--no-report")
    assert result.exit_code == 0, result.output
    assert "Chosen by 40 gold items" in result.output
    assert "best annotators" in result.output
    return tmp_path / "run"


def test_items_for_an_expert(annotrace, run):
    result = annotrace("next", "run", "--gold", "--budget", 20)
    assert result.exit_code == 0, result.output
    frame = pl.read_csv(run / "gold.csv")
    assert frame.columns == ["item", "priority", "part", "reason"]
    assert frame["part"].to_list() == ["random"] * 10 + ["doubtful"] * 10
    assert not set(frame["item"]) & {f"i{k}" for k in range(40)}
    assert "20 items to check, 10 random (to measure accuracy) and 10 doubtful" in result.output
    assert frame["reason"][10] in result.output
    again = annotrace("next", "run", "--gold", "--budget", 20, "--out", "again.csv", "--quiet")
    assert again.output == ""
    assert (run.parent / "again.csv").read_bytes() == (run / "gold.csv").read_bytes()


def test_a_width_says_how_many_are_needed(annotrace, run):
    result = annotrace("next", "run", "--gold", "--width", 0.1)
    assert result.exit_code == 0, result.output
    assert "Gold items for 90 % intervals of accuracy of width 0.1" in result.output
    line = next(line for line in result.output.splitlines() if line.startswith("estimates"))
    needed = int(line.split()[-1])
    assert len(pl.read_csv(run / "gold.csv")) == needed - 40


def test_enough_gold_items(annotrace, run):
    result = annotrace("next", "run", "--gold", "--width", 0.9)
    assert "without rows: the gold items are enough" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gold",), "--budget, --width or both"),
        ((), "give --budget"),
        (("--width", 0.1, "--budget", 5), "--width goes with --gold"),
        (("--gold", "--budget", 2.5), "whole number"),
        (("--gold", "--budget", 5, "--at-least", 3), "--at-least does not go with --gold"),
        (("--gold", "--width", 1.0), "--width"),
    ],
)
def test_options_that_do_not_go_together(annotrace, run, options, message):
    result = annotrace("next", "run", *options)
    assert result.exit_code == 2
    assert message in result.output
    assert not (run / "gold.csv").exists()
