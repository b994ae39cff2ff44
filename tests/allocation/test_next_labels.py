from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import annotrace as at
from annotrace.allocation.plan import CANDIDATES, Plan
from annotrace.errors import InputError

HOSTILE = [
    '=cmd()|" /C"!A0',
    "<script>alert(1)</script>",
    "a,b;c\td",
    'say "hi"',
    "שלום",
    "new\nline",
]


def fitted(table, posterior):
    return SimpleNamespace(table_=table, posterior_=np.asarray(posterior, float))


@pytest.fixture(scope="module")
def model():
    """300 items of three classes, three labels each; annotator 0 is perfect, 5 a spammer."""
    skill = np.array([1.0, 0.8, 0.6, 0.5, 0.4, 0.0])[:, None, None]
    crowd = skill * np.eye(3) + (1 - skill) / 3
    truth = np.arange(300) % 3
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=3, random_state=0)
    return at.aggregation.make("dawid-skene").fit(table)


def test_the_budget_is_spent_on_new_pairs_in_order_of_gain(model):
    frame = at.allocate(model, 50)
    assert frame.columns == ["item", "annotator", "priority", "expected_gain", "reason"]
    assert frame["priority"].to_list() == list(range(1, 51))
    assert frame["expected_gain"].is_sorted(descending=True)
    assert frame["item"].n_unique() == 50
    given = set(zip(model.table_.item.tolist(), model.table_.annotator.tolist(), strict=True))
    assert not given & set(frame.select("item", "annotator").rows())


def test_nobody_is_said_to_label_well_where_nothing_compares_annotators():
    table = at.LabelTable.from_codes(np.arange(60), np.arange(60) % 3, np.arange(60) % 2)
    frame = at.allocate(
        at.aggregation.make().fit(table), 20, available={0: None, 1: None, "new": 5}
    )
    assert len(frame) == 20
    said = set(frame["reason"])
    assert "1 of 1 say 0; nothing compares annotators yet" in said
    assert any(
        reason.endswith("new has no labels so far, too few to be known by") for reason in said
    )
    assert not any("%" in reason for reason in said)


def test_a_perfect_annotator_is_preferred_and_a_spammer_is_not_asked(model):
    asked = Counter(at.allocate(model, 60)["annotator"])
    assert asked.most_common(1)[0][0] == 0
    assert asked[5] == 0


def test_doubtful_items_come_first(model):
    frame = at.allocate(model, 30, available=[1])
    chosen = model.posterior_[frame["item"].to_list()].max(axis=1)
    free = np.setdiff1d(np.arange(300), model.table_.item[model.table_.annotator == 1])
    rest = np.setdiff1d(free, frame["item"].to_list())
    assert np.median(chosen) < np.quantile(model.posterior_[rest].max(axis=1), 0.1)


def test_a_greedy_plan_is_what_brute_force_gives(model):
    """All pairs scored in one table, the best taken, again and again."""
    from annotrace.allocation.annotators import pooled_matrices
    from annotrace.allocation.gain import Reports
    from annotrace.allocation.next_labels import _cautious

    posterior = _cautious(model)
    gains = Reports(pooled_matrices(model.table_, posterior)).gains(posterior)
    gains[model.table_.item, model.table_.annotator] = 0
    left, pairs = [7] * 6, []
    for flat in np.argsort(-gains.round(12), axis=None, kind="stable"):
        item, who = divmod(int(flat), 6)
        if left[who] and item not in dict(pairs):
            pairs.append((item, who))
            left[who] -= 1
    frame = at.allocate(model, 20, available=7)
    assert frame.select("item", "annotator").rows() == pairs[:20]


def test_capacity_is_kept(model):
    asked = Counter(at.allocate(model, 60, available={0: 5, 1: 3, 2: None})["annotator"])
    assert (asked[0], asked[1], asked[2]) == (5, 3, 52)
    assert max(Counter(at.allocate(model, 30, available=6)["annotator"]).values()) <= 6


def test_capacity_is_kept_by_many_who_are_all_alike():
    item, annotator = np.arange(400), np.arange(400) % 100
    table = at.LabelTable.from_codes(item, annotator, np.zeros(400, int), n_classes=2)
    capacity = {who: 1 if who < 40 else 5 for who in range(100)}
    frame = at.allocate(fitted(table, np.full((400, 2), 0.5)), 1000, available=capacity, at_least=0)
    assert Counter(frame["annotator"]) == capacity


def test_cost_counts_against_the_budget_and_for_the_choice(model):
    frame = at.allocate(model, 10, cost=2.5)
    assert len(frame) == 4
    dear = at.allocate(model, 10, cost={0: 100})
    assert 0 not in dear["annotator"].to_list()
    assert len(at.allocate(model, 1, cost=0.1)) == 10


def test_nobody_available_is_nobody_asked(model):
    assert len(at.allocate(model, 10, available={0: 0})) == 0


def test_several_labels_of_an_item_where_allowed():
    table = at.LabelTable.from_codes([0, 1], [0, 0], [0, 1], n_annotators=4)
    unsure = fitted(table, [[0.5, 0.5], [0.02, 0.98]])
    pairs = at.allocate(unsure, 3, per_item=3, at_least=0).select("item", "annotator").rows()
    assert [item for item, _ in pairs].count(0) >= 2
    assert len(set(pairs)) == 3


def test_what_is_settled_is_not_asked_whatever_the_budget():
    n = 60
    item, annotator = np.divmod(np.arange(30 * n), n)
    truth = np.arange(30) % 2
    table = at.LabelTable.from_codes(item, annotator, truth[item], n_annotators=n + 2)
    posterior = np.eye(2)[truth]
    posterior[7] = 0.5
    frame = at.allocate(fitted(table, posterior), 1000)
    assert frame["item"].unique().to_list() == [7]


def test_labels_given_back_as_they_are_still_get_a_second_one_each():
    """One label an item tells nobody's skill: the work is shared out."""
    table = at.LabelTable.from_codes(np.arange(40), np.arange(40) % 8, np.arange(40) // 8 % 2)
    truth = at.aggregation.make("dawid-skene").fit(table)
    frame = at.allocate(truth, 40, at_least=0)
    assert frame["item"].n_unique() == 40
    assert set(Counter(frame["annotator"]).values()) == {5}


def test_newcomers_get_enough_to_be_known(model):
    everybody = [*range(6), "kim", "lee"]
    frame = at.allocate(model, 60, available=everybody, at_least=12)
    asked = Counter(frame["annotator"])
    assert asked["kim"] >= 12
    assert asked["lee"] >= 12
    by_kim = frame.filter(pl.col("annotator") == "kim")["reason"][0]
    assert "kim has no labels so far, too few to be known by" in by_kim
    assert Counter(at.allocate(model, 60, available=everybody, at_least=0)["annotator"])["kim"] == 0


def test_newcomers_get_half_of_a_small_budget_and_one_is_known_before_the_next(model):
    frame = at.allocate(model, 20, available=[*range(6), "kim", "lee"], at_least=8)
    assert sorted(Counter(frame["annotator"][:10]).items()) == [("kim", 8), ("lee", 2)]


def test_a_budget_pays_for_the_labels_that_it_is_the_price_of(model):
    people = {"available": [*range(6), "kim"], "cost": 0.1}
    frame = at.allocate(model, 0.6, at_least=3, **people)
    assert Counter(frame["annotator"][:3]) == {"kim": 3}
    assert len(frame) == 6


def test_a_series_without_a_number_is_told_as_it_is(model):
    with pytest.raises(InputError, match="labels that 0 can give to be a whole number"):
        at.allocate(model, 5, available=pd.Series([np.nan, 3], index=[0, 5]))
    with pytest.raises(InputError, match="`cost` has '0' more than once, with"):
        at.allocate(model, 5, cost=pd.Series([1.0, 2.0], index=[0, 0]))


def test_an_item_without_labels_is_asked_first():
    table = at.LabelTable.from_codes(
        [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], n_items=3, n_annotators=3
    )
    truth = at.aggregation.make("dawid-skene").fit(table)
    first = at.allocate(truth, 1, at_least=0).row(0, named=True)
    assert first["item"] == 2
    assert first["reason"].startswith("nobody has labelled it (now ")


def test_the_reason_tells_votes_chances_and_what_the_annotator_is_good_at():
    item, annotator = np.divmod(np.arange(400), 4)
    truth = np.arange(100) % 2
    label = np.where(annotator == 3, 1 - truth[item], truth[item])
    label[:4] = [0, 0, 0, 1]
    names = {
        "annotators": np.array(["ann", "bo", "cy", "di", "ed"]),
        "classes": np.array(["cat", "dog"]),
    }
    table = at.LabelTable(item, annotator, label, items=np.arange(100), **names)
    posterior = np.eye(2)[truth]
    posterior[0] = [0.6, 0.4]
    frame = at.allocate(fitted(table, posterior), 1, at_least=0)
    assert frame.row(0)[:2] == (0, "ed")
    assert frame["reason"][0].startswith(
        "3 of 4 say cat (now cat 60 %, dog 40 %), and ed tells cat"
    )


def test_the_same_call_gives_the_same_labels(model):
    assert at.allocate(model, 40, per_item=2).equals(at.allocate(model, 40, per_item=2))


def test_a_classifier_is_allocated_by_too():
    truth = np.arange(80) % 2
    X = np.eye(2, dtype=np.float32)[truth]
    crowd = at.simulate.hammer_spammers(4, 2, skill=0.6, random_state=0)
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=1, random_state=0)
    model = at.make("vanilla", epochs=2, random_state=0).fit(X, table)
    assert len(at.allocate(model, 5)) == 5


def test_hostile_names_come_out_as_themselves():
    table = at.LabelTable.from_long(
        {"item": HOSTILE, "annotator": HOSTILE, "label": ["=1+1", "b"] * 3}
    )
    frame = at.allocate(at.aggregation.make("majority").fit(table), 6)
    assert set(frame["item"]) <= set(HOSTILE)
    assert set(frame["annotator"]) <= set(HOSTILE)
    assert len(frame) == 6


def test_of_many_annotators_only_the_best_are_put_in_order(monkeypatch):
    rng = np.random.default_rng(0)
    crowd = at.simulate.hammer_spammers(400, 3, 0.7, rng)
    truth = np.arange(2000) % 3
    table = at.simulate.simulate_labels(truth, crowd, labels_per_item=6, random_state=rng)
    model = at.aggregation.make("one-coin").fit(table)
    sizes, whole = [], np.lexsort

    def sort(keys):
        sizes.append(len(keys[0]))
        return whole(keys)

    monkeypatch.setattr(np, "lexsort", sort)
    at.allocate(model, 50, at_least=0)
    assert 0 < max(sizes) < 2 * CANDIDATES


def test_candidates_are_those_of_a_whole_sort():
    rng = np.random.default_rng(0)
    table = at.LabelTable.from_codes([0], [0], [0], n_annotators=300, n_classes=2)
    plan = Plan(table, np.full((1, 2), 0.5), np.full((300, 2, 2), 0.5), np.ones(300), 1)
    plan.load = rng.integers(0, 3, 300)
    for item in (0, 7, 301):
        row = rng.integers(0, 4, 300) / 4
        place = {who: (-row[who], plan.load[who], (who - item) % 300) for who in range(300)}
        expected = sorted(np.flatnonzero(row).tolist(), key=place.__getitem__)[:CANDIDATES]
        assert plan._best(item, row, np.sort(row)[-CANDIDATES]).tolist() == expected


def test_a_series_goes_by_its_index(model):
    limits, costs = {1: 1, 0: 2}, {0: 2.0, 1: 0.5}
    expected = at.allocate(model, 6, available=limits, cost=costs, at_least=0)
    assert set(expected["annotator"].to_list()) == {0, 1}
    series = {"available": pd.Series(limits), "cost": pd.Series(costs)}
    assert at.allocate(model, 6, **series, at_least=0).equals(expected)
    each = at.allocate(model, 6, available=np.int64(1))
    assert each.equals(at.allocate(model, 6, available=1))


def test_what_has_learned_nothing_is_refused():
    with pytest.raises(InputError, match="has learned nothing yet"):
        at.allocate(at.aggregation.make(), 5)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": 0}, "`budget` to be a number larger than 0, but got 0"),
        ({"budget": float("nan")}, "`budget` to be a number larger than 0, but got nan"),
        ({"budget": float("inf")}, "`budget` to be a number larger than 0, but got inf"),
        ({"budget": "5"}, "`budget` to be a number larger than 0, but got '5'"),
        ({"per_item": 0}, "`per_item` to be a whole number larger than 0"),
        ({"per_item": 1.5}, "`per_item` to be a whole number larger than 0"),
        ({"at_least": None}, "`at_least` to be a whole number of at least 0"),
        ({"cost": -1}, "cost of a label by each annotator to be above 0, but got -1"),
        ({"cost": {0: "free"}}, "cost of a label by 0 to be above 0, but got 'free'"),
        ({"cost": {"zoe": 1}}, "neither in the labels nor in `available`: 'zoe'"),
        ({"available": "ann"}, r"Use available=\['ann'\]"),
        (
            {"available": pd.Series([3, 2])},
            r"pass its \.tolist\(\) for names, or its \.to_dict\(\)",
        ),
        ({"available": {0: -1}}, "labels that 0 can give to be a whole number of at least 0"),
        ({"available": {0: 1.5}}, "but got 1.5"),
    ],
)
def test_what_cannot_be_is_refused(model, settings, said):
    with pytest.raises(InputError, match=said):
        at.allocate(model, **({"budget": 5} | settings))
