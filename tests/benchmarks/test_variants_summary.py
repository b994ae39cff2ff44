import numpy as np
import pytest
import variants_check
from variants_check import compare, missed_bars, paired_standard_error
from variants_rows import Cell, pack, read_rows, unpack
from variants_summary import (
    Runs,
    best_methods,
    describe_missing,
    mean_ranks,
    show_left_out,
    show_summary,
    standings,
)

N_TEST = 100
DEFAULTS = ["auto", "trace", "vanilla"]


def row(name, variant, seed, method, n_correct, posterior=None):
    """A run that is correct on the first `n_correct` of 100 test items."""
    return {
        **Cell(name, variant, seed)._asdict(),
        "method": method,
        "accuracy": n_correct / N_TEST,
        "test_part": "test",
        "n_test": N_TEST,
        "correct": pack(np.arange(N_TEST) < n_correct),
        **({} if posterior is None else {"posterior_accuracy": posterior}),
    }


def failed(name, variant, seed, method):
    return {**Cell(name, variant, seed)._asdict(), "method": method, "error": "ValueError: no"}


def some_runs(*others):
    """Return two sets, one variant each and two seeds: auto 80, trace 75 and 85, vanilla 70."""
    n_correct = {"auto": (80, 80), "trace": (75, 85), "vanilla": (70, 70)}
    rows = [
        row(name, "rand-1", seed, method, n, posterior=0.9)
        for method, (first, second) in n_correct.items()
        for name, n in (("labelme", first), ("digits", second))
        for seed in (0, 1)
    ]
    by_run = {(r["set"], r["variant"], r["seed"], r["method"]): r for r in (*rows, *others)}
    return Runs(by_run.values())


def test_booleans_survive_packing():
    correct = np.random.default_rng(0).random(1188) < 0.8
    assert np.array_equal(unpack(pack(correct), 1188), correct)
    assert len(pack(correct)) == 200  # 149 bytes, four characters for three of them


def test_the_last_row_of_a_run_counts(tmp_path):
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text('{"set": "s", "variant": "full", "seed": 0, "method": "m", "error": "no"}\n')
    second.write_text('{"set": "s", "variant": "full", "seed": 0, "method": "m", "accuracy": 1}\n')
    assert [r.get("accuracy") for r in read_rows([first, second, tmp_path / "none"])] == [1]


def test_ranks_are_means_over_sets_and_variants():
    # On LabelMe auto, trace, vanilla; on digits trace, auto, vanilla.
    assert mean_ranks(some_runs()) == {"auto": 1.5, "trace": 1.5, "vanilla": 3.0}


def test_equally_good_methods_share_ranks():
    same = [
        row(name, "rand-1", seed, "trace", 80) for name in ("labelme", "digits") for seed in (0, 1)
    ]
    assert mean_ranks(some_runs(*same)) == {"auto": 1.5, "trace": 1.5, "vanilla": 3.0}


def test_seeds_are_averaged_before_ranking():
    # Better on one of two seeds only, but in the mean.
    runs = some_runs(
        row("labelme", "rand-1", 0, "trace", 100), row("labelme", "rand-1", 1, "trace", 79)
    )
    assert mean_ranks(runs)["trace"] == 1.0


def test_standings_are_means():
    first = next(each for each in standings(some_runs()) if each.method == "trace")
    assert (first.n_done, first.n_failed, first.n_missing) == (4, 0, 0)
    assert first.accuracy == pytest.approx(0.80)
    assert first.posterior == pytest.approx(0.90)
    assert first.auto == pytest.approx(0.80)


@pytest.mark.parametrize("lost", ["failed", "missing"])
def test_a_method_without_all_runs_has_no_rank_and_is_compared_on_its_own(lost):
    runs = some_runs(failed("digits", "rand-1", 1, "trace"))
    if lost == "missing":
        runs = Runs([r for r in runs.rows.values() if "error" not in r])
    trace = standings(runs)[-1]
    assert (trace.method, trace.rank, trace.n_done) == ("trace", None, 3)
    assert trace.accuracy == pytest.approx((0.75 + 0.75 + 0.85) / 3)
    assert trace.auto == pytest.approx(0.80)
    assert mean_ranks(runs) == {"auto": 1.0, "vanilla": 2.0}
    assert describe_missing(runs) == (
        [] if lost == "failed" else ["trace on digits, 1 of 2: rand-1 (1)"]
    )


def test_a_posterior_that_some_runs_lack_has_no_mean():
    runs = some_runs(row("digits", "rand-1", 0, "vanilla", 70))
    assert standings(runs)[-1].posterior is None


def test_the_summary_shows_means_failures_and_missing_runs(capsys):
    runs = some_runs(failed("digits", "rand-1", 1, "trace"), row("digits", "full", 0, "auto", 90))
    show_summary(runs)
    shown = capsys.readouterr().out
    assert "| `auto` | .900 | .800 |" in shown
    assert "| `trace` |  | .850 (1) |" in shown
    assert "| `trace` |  | .783 | .900 | .800 | 3, 1 failed |" in shown
    assert "Failed: trace, digits rand-1, seed 1: ValueError: no" in shown
    assert "vanilla on digits, 1 of 3: full (0)" in shown


def test_methods_are_chosen_by_the_other_sets(capsys):
    show_left_out(some_runs())
    shown = capsys.readouterr().out
    assert "| labelme | trace | .750 | .800 |" in shown
    assert "| digits | auto | .800 | .850 |" in shown


def test_the_best_methods_are_those_with_all_runs():
    runs = some_runs(row("labelme", "full", 0, "gem", 100))
    assert best_methods(some_runs(), 2, lambda method: method != "auto") == ["trace", "vanilla"]
    assert best_methods(runs, 2, lambda method: True) == []


def test_the_error_of_one_seed_is_that_of_a_paired_difference():
    difference = np.array([1.0, 0, 0, -1, 1, 0])
    expected = difference.std(ddof=1) / np.sqrt(6)
    assert paired_standard_error(["test"], [difference]) == pytest.approx(expected)


@pytest.mark.parametrize("shared", [True, False])
def test_the_error_covers_items_seeds_and_noise(shared):
    """Simulate items, seeds and noise of known variance; the mean of squares is the truth."""
    rng, estimates, means = np.random.default_rng(0), [], []
    for _ in range(400):
        item = rng.normal(0, 1.0, (1, 50)) if shared else rng.normal(0, 1.0, (8, 50))
        seed, noise = rng.normal(0, 0.3, (8, 1)), rng.normal(0, 0.5, (8, 50))
        differences = item + seed + noise
        parts = ["test"] * 8 if shared else [str(k) for k in range(8)]
        estimates.append(paired_standard_error(parts, list(differences)) ** 2)
        means.append(differences.mean())
    items = 1 / 50 if shared else 1 / 400
    assert np.mean(estimates) == pytest.approx(items + 0.09 / 8 + 0.25 / 400, rel=0.1)
    assert np.mean(estimates) == pytest.approx(np.var(means), rel=0.2)


def test_differences_are_paired():
    runs = some_runs()
    found = compare(runs, [Cell("labelme", "rand-1", seed) for seed in (0, 1)], "auto", "vanilla")
    # The ten items between 70 and 80 differ, for both seeds alike.
    assert found == (pytest.approx(0.1), pytest.approx(np.sqrt(0.09 / 99)))
    lost = some_runs(failed("labelme", "rand-1", 1, "vanilla"))
    assert compare(lost, lost.cells, "auto", "vanilla") is None


def good_runs(*others):
    rows = [
        row("labelme", variant, 0, method, n)
        for variant in ("full", "rand-1", "worst-1")
        for method, n in (("auto", 80), ("trace", 75), ("vanilla", 70), ("gem+recipe", 80))
    ]
    by_run = {(r["variant"], r["method"]): r for r in (*rows, *others)}
    return Runs(by_run.values())


def test_a_good_default_misses_no_bar():
    assert missed_bars(good_runs(), DEFAULTS) == []


def test_a_method_with_other_parameters_does_not_count():
    tuned = [row("labelme", v, 0, "trace:lam=1", 99) for v in ("full", "rand-1", "worst-1")]
    assert missed_bars(good_runs(*tuned), DEFAULTS) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            [row("labelme", v, 0, "trace", 81) for v in ("full", "rand-1")],
            ["Mean rank: 1.67, but trace has 1.33."],
        ),
        (
            [row("labelme", "worst-1", 0, "trace", 99)],
            ["Mean accuracy: 0.8000, but trace has 0.83"],
        ),
        ([row("labelme", "full", 0, "gem+recipe", 82)], ["but gem+recipe has 0.8067 (3 runs)."]),
        ([row("labelme", "full", 0, "auto", 60)], ["labelme full: 10.0 points below vanilla"]),
        (
            [row("labelme", "rand-1", 0, "auto", 70)],
            ["One label per item: 0.7000, but vanilla has"],
        ),
        ([failed("labelme", "full", 0, "trace")], ["Failed: trace on labelme full, seed 0."]),
        ([failed("labelme", "full", 0, "auto")], ["Failed: auto on", "Mean rank: unknown"]),
    ],
)
def test_each_bar_can_be_missed(changed, said):
    missed = missed_bars(good_runs(*changed), DEFAULTS)
    for words in said:
        assert any(words in line for line in missed), (words, missed)


@pytest.mark.parametrize(
    "changed",
    [
        [row("labelme", "full", 0, "gem+recipe", 81)],  # a third of a point better in the mean
        [row("labelme", "full", 0, "vanilla", 83)],  # 3 points, with a standard error of 1.7
        [row("labelme", "worst-1", 0, "vanilla", 88)],  # on a worst variant
    ],
)
def test_shortfalls_within_the_bars_are_allowed(changed):
    missed = missed_bars(good_runs(*changed), DEFAULTS)
    assert not [line for line in missed if "points below" in line or "recipe" in line]


def test_what_was_not_run_is_missed():
    runs = good_runs()
    rows = [r for r in runs.rows.values() if r["method"] != "gem+recipe"]
    missed = missed_bars(Runs(rows, [*runs.cells, Cell("digits", "full", 0)]), [*DEFAULTS, "wdn"])
    assert "Missing: wdn on all sets." in missed
    assert "Missing: any method with the recipe." in missed
    assert "Missing: auto on digits, all." in missed


def test_a_specification_says_whether_it_has_the_recipe():
    assert variants_check.is_with_recipe("geo-crowd-layer+recipe:volume=W")
    assert not variants_check.is_with_recipe("auto:method=gem+recipe")
