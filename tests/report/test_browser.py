"""The page in Chromium: on wide and narrow screens, light and dark."""

import numpy as np
import pytest

import annotrace as at

SIZES = {1280: 900, 390: 844}


@pytest.fixture(scope="module")
def pages(tmp_path_factory, trained, aggregated, hostile):
    """Write a report of each kind: of a classifier with pictures, of labels alone, of bad names."""
    folder = tmp_path_factory.mktemp("pages")
    images = np.random.default_rng(0).random((90, 8, 8))
    at.write_report(trained, folder / "trained.html", images=images)
    at.write_report(aggregated, folder / "aggregated.html")
    at.write_report(at.aggregation.MajorityVote().fit(hostile), folder / "hostile.html")
    return folder


@pytest.fixture
def open_page(browser, pages):
    """Open a report; requests and errors of the page are in `page.heard`."""
    contexts = []

    def opened(name, width=1280, scheme="light", **options):
        viewport = {"width": width, "height": SIZES[width]}
        context = browser.new_context(viewport=viewport, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.heard = []
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.on("dialog", lambda dialog: page.heard.append(dialog.message))
        page.goto((pages / f"{name}.html").as_uri())
        page.on("request", lambda request: page.heard.append(request.url))
        return page

    yield opened
    for context in contexts:
        context.close()


def names(page, table="annotators"):
    return page.locator(f"#table-{table} > tbody:visible > tr:first-child > th").all_inner_texts()


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_the_page_is_sound(open_page, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page("trained", width, scheme)
    page.locator(".toggle").first.click()
    assert overflow(page) <= 0
    # Rows are alike: a few of each table stand for all, and axe takes its time.
    page.add_style_tag(content="table > tbody:nth-of-type(n + 4) { display: none }")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    assert [(it["id"], it["nodes"][0]["html"]) for it in found] == []
    assert page.heard == []


@pytest.mark.parametrize("width", SIZES)
def test_hostile_names_do_nothing_and_show_as_themselves(open_page, hostile, width):
    page = open_page("hostile", width)
    page.get_by_role("button", name="Open all matrices").click()
    texts = page.locator("bdi.name").evaluate_all("all => all.map(one => one.textContent)")
    for table in ("annotators", "classes"):
        shown = page.locator(f"#table-{table} > tbody > tr > th bdi")
        written = shown.evaluate_all("all => all.map(one => one.textContent)")
        assert sorted(written) == sorted(hostile.annotators.tolist())
    assert set(hostile.items.tolist()) <= set(texts)
    assert page.evaluate("window.ran") is None
    assert page.locator("h1").count() == 1
    assert overflow(page) <= 0
    assert page.heard == []


def test_tables_sort_by_clicks(open_page, aggregated):
    page = open_page("aggregated")
    frame = aggregated.annotators_.sort("skill", descending=True)
    assert names(page) == frame["annotator"].to_list()
    header = page.locator("#table-annotators thead th", has_text="Labels")
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert names(page)[0] == "mallory"
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert names(page)[-1] == "mallory"
    assert page.locator("#table-annotators [aria-sort]").count() == 1
    page.locator("#table-annotators").get_by_role("button", name="Annotator").click()
    # Numeric order: person-2 before person-10.
    assert names(page) == ["mallory", *(f"person-{k}" for k in range(11))]


def test_tables_filter(open_page):
    page = open_page("aggregated")
    controls = page.locator("[data-for=table-annotators]")
    controls.get_by_role("searchbox").fill("PERSON-1")
    assert sorted(names(page)) == ["person-1", "person-10"]
    assert controls.get_by_role("status").inner_text() == "2 of 12 shown"
    controls.get_by_role("searchbox").fill("")
    controls.get_by_role("checkbox").check()
    assert "mallory" in names(page)
    assert len(names(page)) < 12
    controls.get_by_role("checkbox").uncheck()
    assert controls.get_by_role("status").inner_text() == "12 shown"


def test_everything_can_be_done_with_the_keyboard(open_page):
    page = open_page("aggregated")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#table-annotators").get_by_role("button", name="Skill").focus()
    page.keyboard.press("Enter")
    skill = page.locator("#table-annotators thead th", has_text="Skill")
    assert skill.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert skill.get_attribute("aria-sort") == "ascending"
    for _ in range(3):  # accuracy, remarks, the first row
        page.keyboard.press("Tab")
    toggle = page.locator(":focus")
    assert toggle.get_attribute("aria-expanded") == "false"
    page.keyboard.press("Enter")
    assert toggle.get_attribute("aria-expanded") == "true"
    assert page.locator("table.matrix:visible").count() == 2


def test_without_scripts_everything_is_there(open_page):
    page = open_page("aggregated", java_script_enabled=False)
    assert page.locator("#table-annotators table.matrix").first.is_visible()
    assert not page.locator(".controls").first.is_visible()
    assert page.locator("button:visible").count() == 0


def test_print_opens_the_matrices_and_leaves_out_the_controls(open_page):
    page = open_page("trained", scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("#table-annotators table.matrix").first.is_visible()
    assert not page.locator(".controls").first.is_visible()
    assert not page.locator("nav").is_visible()
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")
