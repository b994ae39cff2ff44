"""Texts of items in the page: shortened, escaped, in their own direction."""

import numpy as np
import pytest

import annotrace as at
from annotrace.data import TextSource
from annotrace.errors import InputError
from annotrace.report.item_texts import LONGEST, SHORT, shorten, texts_of
from annotrace.report.page import render
from annotrace.report.view import view_of

TABLE = at.LabelTable.from_long({"item": ["a", "b"], "annotator": ["x", "x"], "label": ["0", "1"]})


def test_long_texts_are_cut_at_a_space():
    assert shorten("short") == ("short", "", 0)
    words = "word " * SHORT
    shown = shorten(words)
    assert shown.short.endswith("word…")
    assert len(shown.short) <= SHORT
    assert (shown.full, shown.n_left_out) == (words, 0)
    assert len(shorten("x" * 1000).short) == SHORT
    assert shorten("x" * (LONGEST + 5)).n_left_out == 5


def test_texts_are_matched_by_name_or_by_position():
    named = texts_of(TextSource(["two", "one"], ["b", "a"]), TABLE)
    assert [named(k)[0].short for k in (0, 1)] == ["one", "two"]
    some = texts_of(TextSource(["two"], ["b"]), TABLE)
    assert (some(0), some(1)[0].short) == ([], "two")
    pairs = texts_of([("p", "h"), ("q", "i")], TABLE)
    assert [text.short for text in pairs(1)] == ["q", "i"]
    assert texts_of(None, TABLE)(0) == []


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["one"], "one for each of 2 items, but got 1"),
        (np.zeros((2, 2)), "Expected `texts` to be texts"),
        (TextSource(["one"], ["z"]), r"None of the 2 items has a text.*\('z'\)"),
    ],
)
def test_wrong_texts(texts, message):
    with pytest.raises(InputError, match=message):
        texts_of(texts, TABLE)


def test_the_page_escapes_texts_and_leaves_their_direction_to_them():
    labels = {"item": ["a", "a"], "annotator": ["x", "y"], "label": ["0", "1"]}
    table = at.LabelTable.from_long(labels)
    model = at.aggregation.make("majority").fit(table)
    page = render(view_of(model), texts=[("<script>alert(1)</script>", "سلام\0\ud800")])
    assert "<script>alert" not in page
    assert '<p class="item-text" dir="auto">&lt;script&gt;alert(1)&lt;/script&gt;</p>' in page
    assert '<p class="item-text" dir="auto">سلام\u2400?</p>' in page
    page.encode("utf-8")
