"""The code of README.md and of every page of the docs runs, and prints what the page says."""

from pathlib import Path

import numpy as np
import pytest
from pages import ROOT, Block, Page, differences, read_blocks

README = ROOT / "README.md"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
]


def disagreements(printed):
    return [
        f"line {block.line}: {told}"
        for block, output in printed
        for told in differences(block, output)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_code_of_a_page_gives_what_the_page_says(path, tmp_path):
    assert disagreements(Page(path).run(tmp_path)) == []


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    """Run the README, its commands on files such as a reader would have."""
    folder: Path = tmp_path_factory.mktemp("readme")
    page = Page(README)
    assert disagreements(page.run(folder)) == []
    assert (folder / "digits" / "truth.csv").is_file()
    assert (folder / "votes" / "report.html").is_file()
    assert (folder / "run" / "next.csv").is_file()
    return page.names


def test_the_classifier_of_the_readme_is_right_though_half_the_labels_are_wrong(readme):
    assert readme["model"].score(readme["test"].X, readme["test"].y) > 0.93


def test_a_loop_of_ones_own_finds_the_annotators(readme):
    error = np.square(readme["layer"].matrices().detach().numpy() - readme["crowd"]).sum((1, 2))
    # Identity, where nothing is learned of anybody, is at 0.5.
    assert error.mean() / 10 < 0.1


def test_labels_alone_in_the_readme(readme):
    assert (readme["truth"].predict() == readme["train"].y).mean() > 0.8


# The mechanism itself

SAMPLE = """# Page
<!-- setup:
x = 2
-->
```python
print(x, 0.5)
```

```text
2 0.5
```

<!-- not run: no such thing -->
```sh
make nothing
```
Prose.

```text
not an output
```
"""


def test_a_command_that_fails_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\nannotrace aggregate nowhere.csv --out run\n```\n")
    with pytest.raises(AssertionError, match=r"nowhere\.csv"):
        Page(page).run(tmp_path)


def test_blocks_have_their_comments_and_outputs(tmp_path):
    setup, python, shell = read_blocks(SAMPLE)
    assert (setup.language, python.said, shell.said) == ("setup", "2 0.5\n", None)
    assert shell.remark("not run") == "no such thing"
    page = tmp_path / "page.md"
    page.write_text(SAMPLE.replace("make nothing", "make test"))
    assert disagreements(Page(page).run(tmp_path)) == []
    page.write_text(SAMPLE.replace("make nothing", "make test").replace("2 0.5", "2 0.7"))
    assert disagreements(Page(page).run(tmp_path)) != []


@pytest.mark.parametrize("command", ["make nothing", "annotrace fit --no-such-option x"])
def test_even_what_does_not_run_must_be_legal(tmp_path, command):
    page = tmp_path / "page.md"
    page.write_text(SAMPLE.replace("make nothing", command))
    with pytest.raises((AssertionError, Exception), match=r"make nothing|no-such-option"):
        Page(page).run(tmp_path)


@pytest.mark.parametrize(
    ("said", "printed", "same"),
    [
        ("ann 0.80\nbob 0.70", "bob 0.71\nann 0.81", True),
        ("ann 0.80", "ann 0.95", False),
        ("ann 0.80", "bob 0.80", False),
        ("ann 0.80", "ann 0.80\nbob 0.70", False),
        ("┌───┐\n│ a ┆ 12 │", "┌──────┐\n│ a    ┆ 12 │", True),
    ],
)
def test_output_within_a_tolerance(said, printed, same):
    block = Block("python", "", 1, ["output within 0.05"], said)
    assert (differences(block, printed) == []) is same
