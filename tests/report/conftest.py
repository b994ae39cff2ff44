"""Small crowds, made-up results, and a browser if there is one."""

import shutil

import numpy as np
import pytest
import torch

import annotrace as at
from annotrace.crowd.annotator_model import FixedMatrices
from annotrace.crowd.dependence import ErrorDependence
from annotrace.crowd.result import CrowdResult
from annotrace.crowd.skills import AnnotatorPosterior
from annotrace.diagnosis import Diagnosis
from annotrace.diagnosis.identifiability import Estimate, Overlap
from annotrace.report.view import ReportView

HOSTILE = [
    "<b>bold</b>",
    "<script>window.ran = 1</script>",
    "</script><script>window.ran = 2</script>",
    '"><img src=x onerror="window.ran = 3">',
    "' onmouseover='window.ran = 4",
    "javascript:window.ran=5",
    "</style><style>body{display:none}",
    "</title><h1>not the title</h1>",
    "<!-- no comment",
    "]]>",
    "&amp; &lt;already&gt; &#x41;",
    "{{ 7 * 7 }}",
    "{% raw %}{# no #}",
    "$x^2$ \\frac{1}{2}",
    "=1+1",
    '=cmd|" /C calc"!A0',
    "+1",
    "-1",
    "@sum(A1)",
    "a,b;c\td",
    'say "hi" `now`',
    "two\nlines",
    "carriage\rreturn",
    "  spaces around  ",
    "\u05e9\u05dc\u05d5\u05dd \u0639\u0631\u0628\u064a",
    "\u202egnp.exe\u202c\u2066",
    "\U0001f9d1\u200d\U0001f52c \U0001f3f3\ufe0f",
    "null",
    "__proto__",
    "x" * 500,
]


@pytest.fixture(scope="session")
def small():
    """Twelve annotators on 90 items of three classes: most are correct in 80 %, one guesses.

    Five labels per item; "mallory" answers without looking.
    """
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    names = [f"person-{k}" for k in range(11)] + ["mallory"]
    classes = np.array(["cat", "dog", "hen"])
    columns = {"item": [], "annotator": [], "label": []}
    for item in range(90):
        for who in [11, *rng.choice(11, 4, replace=False)]:
            right = who != 11 and rng.random() < 0.8
            label = truth[item] if right else rng.integers(3)
            columns["item"].append(f"photo-{item}")
            columns["annotator"].append(names[who])
            columns["label"].append(str(classes[label]))
    return at.LabelTable.from_long(columns)


@pytest.fixture(scope="session")
def aggregated(small):
    return at.aggregation.PooledDawidSkene().fit(small)


@pytest.fixture(scope="session")
def features(small):
    rng = np.random.default_rng(1)
    truth = np.array([int(name.split("-")[1]) % 3 for name in small.items.tolist()])
    return (2 * np.eye(3)[truth] + rng.normal(size=(90, 3))).astype(np.float32)


@pytest.fixture(scope="session")
def trained(small, features):
    model = at.TraceRegularized(epochs=3, random_state=0)
    return model.fit(features, small, items=small.items)


@pytest.fixture(scope="session")
def hostile():
    """Thirty hostile names as annotators, items and classes, mostly labelled correctly."""
    n = len(HOSTILE)
    rows = [
        (HOSTILE[item], HOSTILE[(item + step) % n], HOSTILE[item if step < 3 else (item + 1) % n])
        for item in range(n)
        for step in range(4)
    ]
    item, annotator, label = zip(*rows, strict=True)
    return at.LabelTable.from_long({"item": item, "annotator": annotator, "label": label})


@pytest.fixture(scope="session")
def made_up():
    """A function that makes a view with given numbers."""
    return _made_up


def _made_up(
    table,
    posterior,
    matrices,
    *,
    counts=None,
    variance=1e-4,
    flags=None,
    verdict="identified",
    reasons=(),
):
    """A view with a given posterior and given matrices, which nothing was fitted to."""
    n, c = matrices.shape[:2]
    posterior = np.asarray(posterior)
    result = CrowdResult(
        table,
        posterior,
        posterior.argmax(axis=1),
        FixedMatrices(torch.ones(1, 1, 1)),
        prior=np.full(c, 1 / c),
        gold=np.full(table.n_items, -1, np.int32),
    )
    vars(result)["annotators"] = AnnotatorPosterior(
        counts=matrices if counts is None else counts,
        mean=matrices,
        item_posterior=posterior,
        diagonal_variance=np.full((n, c), variance),
        diagonal_slope=np.zeros((n, c)),
        ability_variance=np.zeros(n),
        error_counts=np.full((n, c), 1 / variance),
        dependence=ErrorDependence(0.0, 0.0, 0.0, n_votes=3.0),
        known_share=np.zeros(n),
    )
    diagnosis = Diagnosis(
        margins=Estimate(*[np.full(c, 0.5)] * 3),
        rivals=np.zeros(c, int),
        class_labels=np.full(c, 100.0),
        best_at=((),) * c,
        information=Estimate(1.0, 1.0, 1.0),
        pairs=(),
        groups=np.zeros(n, int),
        overlap=Overlap(0.0, np.ones(c, bool)),
        class_distances=np.ones((c, c)),
        best_names=np.arange(c),
        dependence=ErrorDependence(0.0, 0.0, 0.0, n_votes=3.0),
        accuracy_bar=0.0,
        estimation_loss=0.0,
        share_of_three=1.0,
        flags=((),) * n if flags is None else tuple(flags),
        n_compared=table.n_labels,
        has_classifier=False,
        table=table,
        verdict=verdict,
        reasons=tuple(reasons),
    )
    return ReportView(result, diagnosis, table, posterior, "trace")


@pytest.fixture(scope="session")
def browser():
    """Chromium, started once."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium on this machine")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        # A container has no sandbox to offer.
        arguments = ["--no-sandbox", "--disable-background-networking"]
        started = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()
