"""What the MNIST figures share."""

from made_up import planned

SWEEPS = ("mnist-em", "mnist-robust", "mnist-ablation", "mnist-dominance")


def test_experiments_share_the_runs_that_they_have_in_common():
    keys = {name: {run["key"] for run in planned(name)} for name in SWEEPS}
    assert keys["mnist-dominance"] <= keys["mnist-em"]
    assert len(keys["mnist-em"] & keys["mnist-robust"]) == 8 * 2 * (3 + 1)
    assert len(keys["mnist-em"] & keys["mnist-ablation"]) == 8 * 2 * (3 + 1)


def test_skills_beside_those_of_the_paper_can_be_asked_for():
    runs = planned("mnist-em", seeds=2, skills=(0.33,), methods=("mbem",))
    assert {run["skill"] for run in runs} == {0.33}
    assert len(runs) == 2 * 2 * 2
