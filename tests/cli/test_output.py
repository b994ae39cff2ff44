import pytest


def test_names_are_shown_as_they_are(annotrace, crowd):
    (crowd / "odd.csv").write_text("item,worker,label\na,[red]x[/red],1\na,y,0\nb,y,0\n")
    assert "[red]x[/red]" in annotrace("aggregate", "odd.csv", "--out", "run").stdout


def test_of_many_annotators_the_first_and_last_are_shown(annotrace, crowd):
    rows = [f"{k},w{k % 50},{k % 2}" for k in range(200)]
    (crowd / "many.csv").write_text("\n".join(["item,worker,label", *rows]))
    output = annotrace("aggregate", "many.csv", "--out", "run").stdout
    assert "the first and last 10 of 50" in output
    assert sum(line.startswith("w") for line in output.splitlines()) == 20


def test_majority_is_the_same_in_the_table_whatever_the_seed(annotrace, crowd):
    rows = [
        f"{k},{who},{label},no" for k in range(40) for who, label in (("a", "no"), ("b", "yes"))
    ]
    (crowd / "ties.csv").write_text("\n".join(["item,worker,label,truth", *rows]))
    args = ("aggregate", "ties.csv", "--method", "majority", "--seed", 5, "--out", "run")
    lines = [line.split() for line in annotrace(*args).stdout.splitlines()]
    (ours,) = (line[1:] for line in lines if line[:1] == ["majority"] and line[1] != "vote")
    (vote,) = (line[2:] for line in lines if line[:2] == ["majority", "vote"])
    assert ours == vote


@pytest.mark.parametrize("place", ["file/sim", "/proc/sim", "file"])
@pytest.mark.parametrize(
    "args",
    [
        ("fit", "absent.csv", "--features", "absent.npz"),
        ("aggregate", "absent.csv"),
        ("demo",),
        ("simulate", "--data", "mnist"),
        ("reproduce", "mnist-em"),
    ],
)
def test_a_place_that_cannot_be_written_is_reported_first(annotrace, tmp_path, args, place):
    (tmp_path / "file").write_text("")
    result = annotrace(*args, "--out", place)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {place} ")
    assert line.endswith("folder.")


def test_checking_a_place_leaves_nothing_there(annotrace, tmp_path):
    result = annotrace("aggregate", "absent.csv", "--out", "new/run")
    assert "absent.csv: no such file" in result.stderr
    assert list(tmp_path.iterdir()) == []
