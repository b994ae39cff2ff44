import numpy as np
import polars as pl
import pytest

import annotrace as at
from annotrace.allocation import gold_items, gold_needed
from annotrace.allocation.gold_items import sample_size
from annotrace.diagnosis.calibration import share_interval
from annotrace.errors import InputError


def crowd(n_items=500, n_annotators=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    right = rng.random((n_items, n_annotators)) < 0.75
    answers = np.where(right, truth[:, None], 1 - truth[:, None])
    # The last annotator has labelled a fifth of the items.
    answers[n_items // 5 :, -1] = -1
    return at.LabelTable.from_wide(answers), truth


@pytest.fixture(scope="module")
def fitted():
    return at.aggregation.make("dawid-skene", random_state=0).fit(crowd()[0])


def test_half_of_the_items_are_random_and_half_doubtful(fitted):
    frame = gold_items(fitted, 41, random_state=0)
    assert frame.columns == ["item", "priority", "part", "reason"]
    assert frame["priority"].to_list() == list(range(1, 42))
    assert frame["part"].to_list() == ["random"] * 21 + ["doubtful"] * 20
    assert frame["item"].n_unique() == 41
    doubtful = frame.filter(pl.col("part") == "doubtful")["item"].to_list()
    others = np.setdiff1d(np.arange(500), frame["item"].to_list())
    votes = fitted.table_.votes()
    close = np.abs(votes[:, 0] - votes[:, 1])
    assert close[doubtful].mean() < 0.5 * close[others].mean()


def test_the_random_part_does_not_depend_on_the_model(fitted):
    """Its items are as often right as all are."""
    truth = crowd()[1]
    right = fitted.result_.estimate == truth
    shares = [
        right[
            gold_items(fitted, 60, random_state=seed).filter(pl.col("part") == "random")["item"]
        ].mean()
        for seed in range(60)
    ]
    assert np.mean(shares) == pytest.approx(right.mean(), abs=0.02)


def test_reasons_name_the_estimate_and_the_votes(fitted):
    row = gold_items(fitted, 40, random_state=0).row(-1, named=True)
    votes = fitted.table_.votes()[row["item"]]
    estimate = fitted.result_.estimate[row["item"]]
    assert row["reason"].startswith(f"now {estimate} (")
    assert f"{int(votes.max())} of {int(votes.sum())} labels" in row["reason"]


def test_gold_and_unlabelled_items_are_not_asked_for():
    table, truth = crowd(60)
    wider = table.replace(items=np.arange(70))
    gold = {item: int(truth[item]) for item in range(15)}
    model = at.aggregation.make("dawid-skene", random_state=0).fit(wider, gold=gold)
    frame = gold_items(model, 100, random_state=0)
    assert sorted(frame["item"]) == list(range(15, 60))


def test_the_sample_gives_an_interval_of_the_width():
    for share in (0.6, 0.8, 0.9):
        size = int(sample_size(np.array(share), 0.05, np.array(10**9)))
        low, high = share_interval(share, size)
        assert high - low == pytest.approx(0.05, abs=0.002)


def test_no_more_than_all_items_are_needed():
    assert sample_size(np.array(0.8), 0.001, np.array(200)) == 200


def test_a_width_decides_how_many_random_items(fitted):
    needed = gold_needed(fitted, 0.1)
    assert needed["of"].to_list() == ["estimates", *"012345"]
    frame = gold_items(fitted, width=0.1, random_state=0)
    assert set(frame["part"]) == {"random"}
    assert len(frame) == needed["n_needed"][0]
    both = gold_items(fitted, len(frame) + 7, width=0.1, random_state=0)
    assert both["part"].to_list() == ["random"] * len(frame) + ["doubtful"] * 7


def test_annotators_with_few_labels_need_more_items(fitted):
    needed = gold_needed(fitted, 0.1)["n_needed"].to_list()
    assert needed[6] > 1.5 * max(needed[1:6])


def test_gold_items_that_are_there_count():
    table, truth = crowd()
    gold = {item: int(truth[item]) for item in range(0, 500, 10)}
    model = at.aggregation.make(random_state=0).fit(table, gold=gold)
    needed = gold_needed(model, 0.06)
    assert needed["n_gold"][0] == 50
    right = np.bincount(table.annotator, table.label == truth[table.item])
    true = right / table.labels_per_annotator()
    assert needed["accuracy"][1:].to_list() == pytest.approx(true, abs=0.15)
    assert len(gold_items(model, width=0.06)) == needed["n_needed"][0] - 50 > 0
    assert len(gold_items(model, width=0.9)) == 0


def test_nothing_to_choose_by_is_an_error(fitted):
    with pytest.raises(InputError, match="`n_items` or `width`"):
        gold_items(fitted)
    with pytest.raises(InputError, match="n_items"):
        gold_items(fitted, 0)
    with pytest.raises(InputError, match="width"):
        gold_needed(fitted, 1.5)
