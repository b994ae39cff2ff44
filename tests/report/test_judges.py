import re

import numpy as np
import pytest

import annotrace as at
from annotrace.judges import evaluate
from annotrace.report import write_judges_report
from annotrace.report.judges import render_judges


def draw(accuracies, n=300, names=None, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)
    wrong = rng.random((n, len(accuracies))) > np.array(accuracies)
    labels = np.where(wrong, 1 - truth[:, None], truth[:, None])
    names = names or [f"judge-{k}" for k in range(len(accuracies))]
    table = at.LabelTable.from_wide(labels, items=[f"i{k}" for k in range(n)], annotators=names)
    return table, {f"i{k}": int(truth[k]) for k in range(n // 2)}


@pytest.fixture(scope="module")
def everything():
    """A panel with gold, people, costs, times and models."""
    names = ["gpt/a", "gpt/b", "qwen", "ann", "bob"]
    table, gold = draw([0.9, 0.8, 0.7, 0.8, 0.8], names=names)
    return evaluate(
        table,
        gold=gold,
        kind={name: "person" if name in ("ann", "bob") else "llm" for name in names},
        cost={"gpt/a": 5},
        model_of="/",
        time={f"i{k}": k % 4 for k in range(300)},
    )


def heading(page):
    return re.search(r'<h1 id="verdict">.*?</span> (.*?)</h1>', page)[1]


@pytest.mark.parametrize(
    ("accuracies", "title"),
    [
        ([0.75] * 7, "The panel is better than its best judge"),
        ([0.97, 0.6, 0.6, 0.6, 0.6], "One judge is better than the panel"),
        ([0.8, 0.8], "The panel is as good as its best judge"),
    ],
)
def test_the_first_thing_said_is_whether_the_panel_is_worth_it(accuracies, title):
    table, gold = draw(accuracies)
    assert heading(render_judges(evaluate(table, gold=gold))) == title


def test_without_gold_it_says_what_is_missing():
    table, _ = draw([0.8, 0.7, 0.6])
    page = render_judges(evaluate(table))
    assert heading(page) == "The accuracy of the judges is unknown"
    assert "have 100 items or more, drawn at random, labelled by an expert" in page
    assert "estimated without gold" in page
    kind = {"judge-0": "llm", "judge-1": "person", "judge-2": "person"}
    page = render_judges(evaluate(table, kind=kind))
    assert heading(page) == "1 of 1 judge may stand in for a person"
    assert 'id="people"' in page
    assert 'id="panel"' not in page


def test_every_section_is_there_and_linked(everything):
    page = render_judges(everything)
    sections = ["overview", "judges", "panel", "shares", "people", "time", "models"]
    assert re.findall(r'<section id="(\w+)"', page) == sections
    assert re.findall(r'<li><a href="#(\w+)"', page) == sections
    accuracy = everything.rows[0].accuracy
    assert f"{100 * accuracy.value:.0f}\u202f%" in page
    assert "Adds per cost" in page
    assert "Model gpt: two of its 2 runs agree" in page
    assert page.count("<svg") == 1 + 3


def test_the_page_is_one_file_that_runs_nothing_of_others(everything, hostile, tmp_path):
    write_judges_report(everything, tmp_path / "judges.html", title="<i>Mine</i>")
    page = (tmp_path / "judges.html").read_text(encoding="utf-8")
    assert "&lt;i&gt;Mine&lt;/i&gt;" in page
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    names = hostile.items.tolist()
    gold = dict(zip(names, names, strict=True))
    kinds = dict.fromkeys(hostile.annotators.tolist(), "llm")
    bad = render_judges(evaluate(hostile, gold=gold, kind=kinds))
    assert "<script>alert" not in bad
    assert len(re.findall(r"<script", bad)) == 1


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_in_a_browser(browser, everything, tmp_path, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    write_judges_report(everything, tmp_path / "judges.html")
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    heard = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto((tmp_path / "judges.html").as_uri())
    page.locator(".toggle").first.click()
    assert page.locator(".detail:visible .matrix").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    context.close()
    assert [(it["id"], it["nodes"][0]["html"]) for it in found] == []
    assert heard == []
