import typing

import numpy as np
import pytest

from annotrace.diagnosis.flags import Flag, FlagKind
from annotrace.diagnosis.reasons import Reason, ReasonKind
from annotrace.diagnosis.wording import (
    describe_flags,
    describe_reason,
    list_names,
    summarize_flags,
)
from annotrace.labels import LabelTable
from annotrace.labels.vocabulary import TEXT

TABLE = LabelTable.from_codes(np.arange(9), np.arange(9) % 3, np.arange(9))


def named():
    classes = np.array(["human", "bot", "spammer"], dtype=TEXT)
    return LabelTable(
        [0, 1], [0, 1], [0, 1], items=np.arange(2), annotators=np.arange(2), classes=classes
    )


def test_many_confusions_make_a_short_remark():
    pairs = [(3, 1), (8, 3), (6, 7), *((k, k + 1) for k in range(1, 7))]
    flags = [Flag("confuses", pair) for pair in pairs]
    assert describe_flags(flags, TABLE) == (
        "confuses 3 with 1, 8 with 3 and 6 with 7, and 6 more pairs"
    )


def test_confusions_both_ways_are_said_once():
    flags = [Flag("confuses", pair) for pair in ((0, 1), (1, 0), (2, 3))]
    assert describe_flags(flags, TABLE) == "confuses 0 with 1 (both ways) and 2 with 3"


def test_flags_of_one_annotator_are_joined():
    flags = [Flag("adversarial"), Flag("confuses", (0, 1)), Flag("few-labels")]
    assert describe_flags(flags, TABLE) == (
        "adversarial: correct less often than by chance; confuses 0 with 1; few labels"
    )
    assert describe_flags([], TABLE) == ""


def test_names_of_classes_are_not_taken_for_kinds():
    flags = [(Flag("confuses", (0, 2)),), ()]
    assert describe_flags(flags[0], named()) == "confuses human with spammer"
    assert summarize_flags(flags, named()) == ["Systematically confuse one class with another: 0."]


@pytest.mark.parametrize("kind", typing.get_args(FlagKind))
def test_every_kind_of_flag_has_a_summary(kind):
    classes = (0, 1) if kind == "confuses" else ()
    (line,) = summarize_flags([[Flag(kind, classes)], []], TABLE)
    assert line.endswith(": 0.")


@pytest.mark.parametrize("kind", typing.get_args(ReasonKind))
def test_every_reason_has_words_and_advice(kind):
    numbers = {"groups": 2.0, "margin": 0.2, "low": 0.05, "high": 0.3, "kept": 0.7}
    numbers |= {"votes": 2.5, "effective": 1.4, "unknown": 0.1, "loss": 0.02, "share": 0.3}
    reason = Reason(kind, (0, 1), (1, 0), (2,), numbers)
    text, advice = describe_reason(reason, TABLE)
    assert text.endswith(".")
    assert advice.endswith(".")


def test_a_small_margin_says_how_many_labels_are_missing_and_from_whom():
    numbers = {"margin": 0.2, "low": 0.05, "high": 0.35, "labels_needed": 123.4}
    text, advice = describe_reason(Reason("small-margin", (1,), (2,), (0, 2), numbers), TABLE)
    assert text == (
        "Items of class 2 are labelled 1 nearly as often as items of class 1 are: margin 0.20 "
        "(0.05 to 0.35)."
    )
    assert advice == (
        "Collect about 200 more labels for items that are probably 1, preferably from annotators "
        "who know the class: 0 and 2."
    )


def test_names_are_quoted_if_they_are_text():
    assert list_names(["a", "b"]) == "'a' and 'b'"
    assert list_names([1, 2, 3, 4, 5, 6, 7]) == "1, 2, 3, 4, 5 and 2 more"
