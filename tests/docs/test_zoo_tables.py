import zoo_tables

METHODS = (*zoo_tables.SHOWN, "oracle")


def run(family, crowd, **accuracy):
    measured = dict.fromkeys(METHODS, 0.5) | accuracy
    return {
        "family": family,
        "crowd": crowd,
        "known": 1234,
        "accuracy": measured,
        "balanced_accuracy": dict.fromkeys(METHODS, 0.4),
        "difference": -0.0004,
        "difference_se": 0.012,
    }


def test_real_crowds_have_the_best_in_bold_and_a_mean():
    runs = [run("real", "dog", mace=0.9), run("real", "birds", default=0.7), run("camps", "c")]
    lines = zoo_tables.real_table(runs).splitlines()
    best = "| dog (1,234 items) | .500 | .500 | .500 | .500 | **.900** | .500 | +0.0 ± 1.2 |"
    assert lines[2] == best
    assert lines[-1] == "| mean | .500 | .500 | .500 | .500 | **.700** | .600 |  |"


def test_families_are_compared_with_majority_vote_and_the_oracle():
    runs = [run(family, family) for family in zoo_tables.FAMILIES]
    runs.append(run("camps", "camps/1", default=0.3, oracle=0.9))
    table = zoo_tables.families_table(runs)
    best = " | ".join(["**.500**"] * 5)
    assert f"| a camp shares wrong answers | {best} | .400 | .700 | -10.0 |" in table
    assert "| rare classes, balanced accuracy | **.400** |" in table
    assert len(table.splitlines()) == 2 + len(zoo_tables.FAMILIES) + 1
