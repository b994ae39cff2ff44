"""The Python of the README runs, and learns what it says."""

import re
from pathlib import Path

import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    names: dict[str, object] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("readme"))
        for block in blocks:
            exec(compile(block, str(README), "exec"), names)
        assert Path("run/truth.csv").is_file()
    return names


def test_the_classifier_is_right_though_half_the_labels_are_wrong(names):
    test = names["test"]
    assert names["model"].score(test.X, test.y) > 0.93


def test_a_loop_of_ones_own_finds_the_annotators(names):
    error = np.square(names["layer"].matrices().detach().numpy() - names["crowd"]).sum((1, 2))
    # Identity, where nothing is learned of anybody, is at 0.5.
    assert error.mean() / 10 < 0.1


def test_labels_alone(names):
    assert (names["truth"].predict() == names["train"].y).mean() > 0.8
