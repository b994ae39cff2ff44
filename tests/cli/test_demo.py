import annotrace as at


def numbers(line):
    return [float(word.replace(",", "")) for word in line.split() if word[0].isdigit()]


def test_the_demo_beats_a_classifier_on_majority_vote(annotrace, tmp_path):
    result = annotrace("demo", "--out", "run")
    assert result.exit_code == 0, result.output
    rows = {line.split("  ")[0]: line for line in result.stdout.splitlines()}
    (vote,) = numbers(rows["majority vote"])
    (plain,) = numbers(rows["classifier on majority vote"])
    labelled, new = numbers(rows["annotrace"])
    assert 0.45 < vote < 0.55
    assert new > plain + 0.25
    assert labelled > 0.9
    model = at.load(tmp_path / "run")
    test = at.data.load_digits().split(1400)[1]
    assert round(model.score(test.X, test.y), 3) == new


def test_the_annotators_are_told_with_true_and_estimated_skill(annotrace):
    lines = annotrace("demo", "--out", "run").stdout.splitlines()
    start = next(k for k, line in enumerate(lines) if "true skill" in line)
    rows = [numbers(line) for line in lines[start + 1 : start + 6]]
    assert [row[0] for row in rows] == [0, 1, 2, 3, 4]
    assert sum(row[1] for row in rows) == 1400
    assert all(abs(true - 0.5) < 0.05 and abs(guess - true) < 0.15 for *_, true, guess in rows)


def test_an_earlier_run_is_not_written_over_unasked(annotrace, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "truth.csv").write_text("mine")
    result = annotrace("demo", "--out", "run")
    assert result.exit_code == 2
    assert (tmp_path / "run" / "truth.csv").read_text() == "mine"
