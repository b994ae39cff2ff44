import variant_tables


def run(name, method, accuracy, seconds=2.0, variant="full"):
    cell = {"set": name, "variant": variant, "seed": 0, "method": method}
    return {**cell, "accuracy": accuracy, "posterior_accuracy": 0.5, "seconds": seconds}


RUNS = [
    run("labelme", "auto", 0.8),
    run("digits", "auto", 0.9, seconds=4.0),
    run("labelme", "vanilla", 0.7),
    run("digits", "vanilla", 0.95),
    run("labelme", "gem", 0.6),
]


def test_means_are_over_sets_and_what_is_missing_is_blank():
    lines = variant_tables.by_variant_table(RUNS).splitlines()
    assert lines[0] == "Means over 2 variants of 2 sets (labelme, digits), seeds 0."
    assert "| `auto` | 1.5 | .850 | .850 | .500 |" in lines
    assert "| `gem` |  |  |  |  |" in lines
    assert lines[-1] == "Not run: gem on digits, all."


def test_failures_are_named():
    failed = run("digits", "gem", None) | {"error": "ValueError: no"}
    assert "Failed: gem on digits full, seed 0." in variant_tables.by_variant_table([*RUNS, failed])


def test_sets_have_columns_with_seconds():
    worst = [run("digits", method, 0.5, 6.0, "worst-1") for method in ("auto", "vanilla", "gem")]
    lines = variant_tables.by_set_table([*RUNS, *worst]).splitlines()
    assert lines[0] == "| method | LabelMe | digits, features |"
    assert "| `auto` | .800 (2.0 s) | .700 (5.0 s) |" in lines
    assert "| `gem` | .600 (2.0 s) |  |" in lines
