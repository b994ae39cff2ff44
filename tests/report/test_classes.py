import re
from functools import partial

import numpy as np
import pytest

import annotrace as at
from annotrace.diagnosis import pairwise_kappa
from annotrace.labels import LabelTable
from annotrace.report.classes import agreement_of, class_section
from annotrace.report.view import view_of


def test_classes_say_how_common_they_are_and_what_they_are_taken_for(aggregated):
    found = class_section(view_of(aggregated))
    assert [it.name for it in found.shown] == ["cat", "dog", "hen"]
    estimated = aggregated.predict().tolist()
    assert [it.n_items for it in found.shown] == [estimated.count(it.name) for it in found.shown]
    assert sum(it.n_labels for it in found.shown) == 450
    cat = found.shown[0]
    assert cat.recognised + sum(it.share for it in cat.confused_with) == pytest.approx(1)
    np.testing.assert_allclose(
        [it.margin for it in found.shown], np.transpose(aggregated.diagnosis_.margins)
    )


def test_agreement_is_that_of_the_diagnosis(small):
    values = {it.name: it.value for it in agreement_of(small)}
    assert values["Krippendorff's alpha"] == at.diagnosis.krippendorff_alpha(small)
    assert values["Fleiss' kappa"] == at.diagnosis.fleiss_kappa(small)
    assert values["Cohen's kappa"] == at.diagnosis.pairwise_kappa(small).mean()


def test_the_page_says_which_kappa_it_is(small):
    (meaning,) = (it.meaning for it in agreement_of(small) if it.name == "Cohen's kappa")
    assert meaning.startswith("unweighted, for classes without order: mean over pairs")
    assert meaning.endswith("share 20 items or more, weighted by the items they share")


def test_there_is_no_agreement_with_one_label_per_item():
    assert agreement_of(at.LabelTable.from_codes([0, 1], [0, 1], [0, 1])) == []


def test_agreement_on_one_class_is_no_number():
    table = at.LabelTable.from_codes([0, 0], [0, 1], [0, 0])
    assert {it.value for it in agreement_of(table)} == {None}
    assert agreement_of(table)[0].meaning == "every label is of one class"


def test_a_pair_that_shares_too_few_items_has_no_kappa_and_the_page_says_so():
    table = at.LabelTable.from_codes([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0])
    cohen = agreement_of(table)[-1]
    assert (cohen.name, cohen.value) == ("Cohen's kappa", None)
    assert cohen.meaning == "no two annotators share 20 items"


def test_the_page_says_that_pairs_were_drawn(monkeypatch):
    item = np.repeat(np.arange(400), 3)
    annotator, label = np.tile([0, 1, 2], 400), np.random.default_rng(0).integers(0, 2, 1200)
    table = LabelTable.from_codes(item, annotator, label)
    sampled = partial(pairwise_kappa, max_pairs=300)
    monkeypatch.setattr("annotrace.report.classes.pairwise_kappa", sampled)
    kappa = agreement_of(table)[-1]
    assert re.search(r"; estimated from \d+ (items|annotators) drawn at random$", kappa.meaning)
