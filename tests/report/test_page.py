import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import annotrace as at
from annotrace.diagnosis import Flag
from annotrace.report.page import percent, render
from annotrace.report.review import uncertain_items
from annotrace.report.view import view_of


class Names(HTMLParser):
    """Collect the content of <bdi>, and every tag."""

    def __init__(self):
        super().__init__()
        self.names, self.tags, self.open = set(), [], None

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "bdi":
            self.open = ""

    def handle_endtag(self, tag):
        if tag == "bdi":
            self.names.add(self.open)
            self.open = None

    def handle_data(self, data):
        if self.open is not None:
            self.open += data


def parsed(page):
    found = Names()
    found.feed(page)
    return found


def test_hostile_names_stand_in_the_page_as_text(hostile):
    page = render(view_of(at.aggregation.MajorityVote().fit(hostile)))
    found = parsed(page)
    assert set(hostile.annotators.tolist()) <= found.names
    scripts = [attrs for tag, attrs in found.tags if tag == "script"]
    assert scripts == [{}]
    assert not [attrs for _, attrs in found.tags if any(name.startswith("on") for name in attrs)]
    assert found.tags.count(("style", {})) == 1
    assert not {"img", "iframe", "object", "form"} & {tag for tag, _ in found.tags}


def test_the_policy_lets_only_our_own_script_run(aggregated):
    page = render(view_of(aggregated))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(
        attrs["content"]
        for tag, attrs in parsed(page).tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.parametrize("kind", ["aggregated", "trained"])
def test_no_name_is_left_where_annotators_are_anonymous(kind, request, small, tmp_path):
    model = request.getfixturevalue(kind)
    at.write_report(model, tmp_path / "report.html", anonymous=True)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not [name for name in small.annotators.tolist() if name in page]
    assert "Annotator 12" in page
    at.write_report(model, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not [name for name in small.annotators.tolist() if name not in page]


def test_a_hundred_thousand_annotators_and_a_million_items_fit_in_ten_megabytes(random_view):
    n_items, n_annotators, n_classes = 1_000_000, 100_000, 10
    rng = np.random.default_rng(0)
    who = rng.integers(n_annotators, size=2 * n_items, dtype=np.int32)
    label = rng.integers(n_classes, size=2 * n_items, dtype=np.int32)
    item = np.repeat(np.arange(n_items, dtype=np.int32), 2)
    sizes = {"n_items": n_items, "n_annotators": n_annotators, "n_classes": n_classes}
    table = at.LabelTable.from_codes(item, who, label, **sizes)
    chances = rng.random((n_items, n_classes), dtype=np.float32)
    chances /= chances.sum(axis=1, keepdims=True)
    page = render(random_view(table, chances, rng))
    assert len(page.encode()) < 10e6
    assert re.search(r"\d{3} of 100,000 annotators are shown", page)
    assert "are in annotators.csv" in page
    assert re.search(r"The 100 least certain of [\d,]+ are shown", page)


def test_the_page_says_how_many_of_those_to_look_at_are_left_out(random_view):
    n = 1000
    rng = np.random.default_rng(0)
    table = at.LabelTable.from_codes(np.arange(n) % 50, np.arange(n), np.arange(n) % 2)
    posterior = rng.dirichlet(np.ones(2), 50)
    flags = [(Flag("confuses", (0, 1)),) if k % 4 else () for k in range(n)]
    page = render(random_view(table, posterior, rng, flags))
    n_shown = page.count("<tbody data-check>")
    assert f"They include {n_shown} of the 750 who need attention." in page
    nobody = render(random_view(table, posterior, rng, [()] * n))
    assert "who need attention." not in nobody


def test_the_page_says_what_skills_are_measured_against(small, aggregated):
    truth = np.array([int(name.split("-")[1]) % 3 for name in small.items.tolist()])
    scored = small.replace(truth=truth)
    gold = {"photo-0": "cat", "photo-1": "dog"}

    def text_of(model):
        return " ".join(render(view_of(model)).split())

    fit = at.aggregation.PooledDawidSkene().fit
    assert "measured against the estimated classes. The bar" in text_of(aggregated)
    assert "measured against the estimated classes, not the known ones. The bar" in text_of(
        fit(scored)
    )
    assert (
        "measured against the known classes of 2 gold items and the estimated classes of the "
        "others. The bar" in text_of(fit(small, gold=gold))
    )
    skills = [fit(table).annotators_["skill"] for table in (small, scored)]
    np.testing.assert_array_equal(*skills)


def test_the_most_classes_of_a_matrix_with_long_names_fit_too(random_view):
    n_annotators, n_classes = 1000, 20
    rng = np.random.default_rng(0)
    names = at.LabelTable.from_long(
        {
            "item": [f"i{k % 200}" for k in range(4000)],
            "annotator": [f"{k % n_annotators:0500d}" for k in range(4000)],
            "label": [f"{k % n_classes:0500d}" for k in range(4000)],
        }
    )
    page = render(random_view(names, rng.dirichlet(np.ones(n_classes), 200), rng))
    assert len(page.encode()) < 10e6


def test_a_hundred_classes_are_not_drawn_as_a_matrix(random_view):
    rng = np.random.default_rng(0)
    table = at.LabelTable.from_codes(
        *rng.integers([[50], [5], [100]], size=(3, 500)), n_classes=100
    )
    page = render(random_view(table, rng.dirichlet(np.ones(100), 50), rng))
    assert 'class="matrix' not in page
    assert "most frequent errors" in page


@pytest.fixture
def random_view(made_up):
    """A function that makes a view of random numbers: only the length of the page matters."""

    def make(table, posterior, rng, flags=None):
        n, c = table.n_annotators, table.n_classes
        matrices = rng.random((n, c, c), dtype=np.float32)
        matrices /= matrices.sum(axis=2, keepdims=True)
        flags = [(Flag("few-labels"),)] * n if flags is None else flags
        return made_up(table, posterior, matrices, variance=1e-3, flags=flags)

    return make


@pytest.mark.parametrize(
    ("share", "message"),
    [
        (0, "0 %"),
        (0.001, "<1 %"),
        (0.494, "49 %"),
        (0.997, "99.7 %"),
        (0.9999, "99.9 %"),
        (1, "100 %"),
    ],
)
def test_percent_never_rounds_to_certain(share, message):
    assert percent(share).replace("\u202f", " ") == message


def test_a_picture_is_shown_even_if_the_first_item_has_none(aggregated, tmp_path):
    from PIL import Image

    view = view_of(aggregated)
    second = uncertain_items(view, lambda item: "", lambda item: [])[1].name
    Image.new("L", (8, 8)).save(tmp_path / f"{second}.png")
    assert "<img" in render(view, images=tmp_path).split('id="labels"')[0]


def test_the_page_says_what_gold_items_have_chosen(aggregated):
    candidates = [
        {"name": "regression", "weight": 0.75, "accuracy": 0.81, "log_loss": 0.4},
        {"name": "combination", "weight": 1.0, "accuracy": 0.84, "log_loss": 0.3},
    ]
    view = view_of(aggregated)
    assert "Chosen by gold items" not in render(view)
    page = render(replace(view, candidates=candidates))
    regression = f"{percent(0.81)} correct, weight {percent(0.75)}"
    assert f"<dt>regression</dt><dd>{regression}</dd>" in page
    assert f"<dt>combination</dt><dd>{percent(0.84)} correct</dd>" in page
