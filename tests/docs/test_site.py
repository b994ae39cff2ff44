"""The site builds without a warning, and every page of it is found from the first."""

import re
import subprocess
import sys

import pytest
from pages import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")
pytest.importorskip("furo")
pytest.importorskip("sphinx_copybutton")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build as `make docs` does, in a process of its own: warnings of Sphinx's are not ours."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    folders = [str(ROOT / "docs"), str(folder / "html"), "-d", str(folder / "doctrees")]
    done = subprocess.run([*command, *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_built_and_links_lead_somewhere(site):
    pages = {path.relative_to(site) for path in site.rglob("*.html")}
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    built = {path.with_suffix(".html") for path in sources if "_build" not in path.parts}
    assert built <= pages
    for page in built:
        text = (site / page).read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"#:]+?)(?:[#?][^"]*)?"', text):
            assert (site / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"', text)
        assert loaded == [], page.name


def test_formulas_are_drawn_by_the_browser(site):
    text = (site / "theory.html").read_text(encoding="utf-8")
    assert text.count('<math display="block"') == 4
    assert "mathjax.js" not in text.lower()


def test_the_names_have_their_docstrings(site):
    text = (site / "api" / "plots.html").read_text(encoding="utf-8")
    assert 'id="annotrace.plots.confusion"' in text
    assert "true classes down, reported classes across" in text
