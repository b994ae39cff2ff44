import pytest
import zoo_summary
from zoo_summary import BARRED, missed_bars

METHODS = ("majority", "mace", "default")
FAMILY = {"majority": 0.8, "mace": 0.7, "default": 0.8, "oracle": 0.9}


def real(name, *, difference=0.0, difference_se=0.005, **accuracy):
    return {
        "family": "real",
        "crowd": name,
        "accuracy": dict.fromkeys(METHODS, 0.85) | {"default": 0.9} | accuracy,
        "best_simple": "mace",
        "difference": difference,
        "difference_se": difference_se,
        "calibration_error": 0.05,
        "error_correlation": 0.1,
        "verdict": "identified",
    }


def drawn(family, balanced=FAMILY, **accuracy):
    return {
        "family": family,
        "crowd": f"{family}/0",
        "accuracy": FAMILY | accuracy,
        "balanced_accuracy": balanced,
        "calibration_error": 0.05,
        "verdict": "weak",
        "easy": family == "independent",
    }


def rows(*changed):
    """Return rows that meet all bars, with some of them changed."""
    good = [*(real(name) for name in BARRED), drawn("camps"), drawn("imbalance")]
    by_crowd = {row["crowd"]: row for row in (*good, *changed)}
    return list(by_crowd.values())


def test_a_good_default_misses_no_bar():
    assert missed_bars(rows()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ([real("facts", default=0.898)], "Accuracy on facts: 0.8980"),
        ([real("web_relevance", default=0.829)], "Accuracy on web: 0.8290"),
        ([real("dog", default=0.63)], "Accuracy on the eleven: 0.8755"),
        ([real(name, mace=0.91) for name in BARRED], "but mace has 0.9100"),
        ([real("labelme", difference=-0.031)], "labelme: 3.1 points below mace"),
        ([drawn("camps", default=0.789)], "camps: accuracy 1.1 points below majority"),
        ([drawn("imbalance", FAMILY | {"default": 0.7})], "imbalance: balanced accuracy 10.0"),
    ],
)
def test_each_bar_can_be_missed(changed, said):
    missed = missed_bars(rows(*changed))
    assert len(missed) == 1
    assert said in missed[0]


@pytest.mark.parametrize(
    "changed",
    [
        real("dog", difference=-0.029),  # within .02 and two errors of .005
        drawn("camps", default=0.791),
        drawn("camps", FAMILY | {"default": 0.1}),  # balanced accuracy counts for imbalance alone
    ],
)
def test_shortfalls_within_the_bars_are_allowed(changed):
    assert missed_bars(rows(changed)) == []


def test_what_was_not_run_is_missed():
    assert "dog" in missed_bars([row for row in rows() if row["crowd"] != "dog"])[0]
    only_real = [row for row in rows() if row["family"] == "real"]
    assert missed_bars(only_real) == ["No simulated families were run."]


def test_summary_shows_means_and_the_worst_shortfall(capsys):
    worse = real("dog", difference=-0.025, difference_se=0.01)
    sharper = real("facts", difference=-0.02, difference_se=0.002)
    more = drawn("camps", majority=0.9) | {"crowd": "camps/1"}
    zoo_summary.show_summary(rows(worse, sharper, more))
    shown = capsys.readouterr().out
    assert "| mean of 15 | .850 | .850 | .900 |" in shown
    assert "2.5 points (dog), 10.0 paired standard errors (facts)" in shown
    assert "| camps | .850 | .700 | .800 | .900 | -5.0 | .050 | 0 of 2 |" in shown
    assert "| imbalance, balanced | .800 |" in shown


def test_methods_are_chosen_by_the_other_families(capsys):
    zoo_summary.show_left_out([drawn("camps", mace=0.95), drawn("drift"), drawn("graded")])
    shown = capsys.readouterr().out
    assert "| camps | majority | .800 | .950 |" in shown
    assert "| drift | mace | .700 | .800 |" in shown


def test_balanced_accuracy_chooses_for_imbalance(capsys):
    balanced = FAMILY | {"mace": 0.99}
    zoo_summary.show_left_out([drawn("imbalance", balanced), drawn("drift")])
    assert "| drift | mace | .700 | .800 |" in capsys.readouterr().out


def test_identified_is_right_near_the_oracle_and_if_calibrated(capsys):
    identified = {"verdict": "identified"}
    zoo_summary.show_summary(
        [
            drawn("independent", default=0.871) | identified,
            drawn("independent", default=0.869) | identified,
            drawn("camps", default=0.9) | identified | {"calibration_error": 0.071},
            drawn("independent", default=0.9),
        ]
    )
    said = '"identified" is right in 1 of 3 simulated crowds, and said of 2 of 3 easy ones'
    assert said in capsys.readouterr().out
