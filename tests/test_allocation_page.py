"""The Python of docs/allocation.md runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "allocation.md"


def test_the_python_of_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    exec(compile(block, str(PAGE), "exec"), {})
    assert "expected_gain" in capsys.readouterr().out
