import numpy as np
import torch
from made_up import check_drawn, made_up, planned

from annotrace.data import load_digits
from annotrace.experiments import find_experiment


def test_runs_are_one_group_of_each_kind():
    assert [run["crowd"] for run in planned("annotators")] == [
        "pairwise-flippers",
        "hammer-spammers",
    ]


def test_diagonals_are_called_so(tmp_path):
    # Spammers of a mean skill of .5 guess a tenth of the rest: their diagonals are .55.
    page = check_drawn("annotators", {"figure-8"}, tmp_path)
    assert "| group | mean skill | mean diagonals |" in page
    assert "| hammer-spammers | 0.5 | 0.55" in page


def test_equal_results_give_equal_files(tmp_path):
    experiment = find_experiment("annotators")
    results = [made_up(run) for run in planned("annotators")]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        experiment.draw(results, tmp_path / folder)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("one", "two")
    )
    assert one == two


def test_each_group_is_described_by_its_matrices_and_labels():
    experiment, data = find_experiment("annotators"), load_digits().split(600)
    for run in planned("annotators"):
        result = experiment.perform(run, data, torch.device("cpu"))
        confusion = np.array(result["confusion"])
        np.testing.assert_allclose(confusion.sum(axis=2), 1, atol=1e-3)
        expected = confusion[:, data[0].y, data[0].y].mean()
        assert abs(result["accuracy"] - expected) < 0.03
