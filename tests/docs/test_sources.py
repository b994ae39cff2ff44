"""The source distribution has what its pages tell a reader to run."""

import re

import pytest
from pages import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_scripts_that_pages_name_are_in_the_source_distribution():
    toml = pytest.importorskip("tomllib")
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    scripts = {
        script
        for page in PAGES
        for script in re.findall(r"python ([\w/]+\.py)", page.read_text(encoding="utf-8"))
    }
    assert "benchmarks/digits.py" in scripts
    assert {script for script in scripts if not (ROOT / script).is_file()} == set()
    assert {script.split("/")[0] for script in scripts} <= set(included)
