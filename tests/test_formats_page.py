"""Every command of docs/formats.md gives what the page says."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from annotrace.cli.main import main

PAGE = Path(__file__).parents[1] / "docs" / "formats.md"
SAMPLES = Path(__file__).parent / "labels" / "samples"
EXAMPLES = re.findall(
    r"```sh\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S
)


def run(line):
    command, *words = shlex.split(line)
    if command == "cat":
        return Path(words[0]).read_text(encoding="utf-8")
    assert command == "annotrace"
    return CliRunner().invoke(main, words).output


@pytest.fixture
def samples(tmp_path, monkeypatch):
    shutil.copytree(SAMPLES, tmp_path / "samples")
    monkeypatch.chdir(tmp_path / "samples")


@pytest.mark.parametrize(
    ("commands", "said"), EXAMPLES, ids=[text.split()[2] for text, _ in EXAMPLES]
)
def test_an_example_gives_what_the_page_says(samples, commands, said):
    assert "".join(map(run, commands.splitlines())) == said


def test_the_python_of_the_page_runs(samples):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})
    assert Path("labels.csv").is_file()
