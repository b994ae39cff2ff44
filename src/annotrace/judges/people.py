"""Judges and people: how far judges agree with people, and people with each other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from annotrace.judges.agreement import (
    Agreement,
    agreement_between,
    agreement_with,
    agreement_within,
    other_votes,
)
from annotrace.judges.estimates import Estimate
from annotrace.labels.table import LabelTable


class PersonAgreement(NamedTuple):
    """A person against the other people, on the items that they share."""

    person: Any
    n_items: int
    agreement: Estimate
    kappa: Estimate


class People(NamedTuple):
    """What is known from people.

    Attributes
    ----------
    together : Agreement
        Of two people on one item.
    each : list of PersonAgreement
    judges : list of Agreement
        Of each judge with people.
    """

    together: Agreement
    each: list[PersonAgreement]
    judges: list[Agreement]


def compare_with_people(people: LabelTable, judges: LabelTable) -> People:
    """Compare judges with people, and people with each other.

    Parameters
    ----------
    people, judges : LabelTable
        Labels of people and of judges, with the same items and classes.
    """
    votes = other_votes(people, people)
    each = []
    for code, name in enumerate(people.annotators.tolist()):
        own = people.annotator == code
        each.append(
            PersonAgreement(name, *agreement_with(people.item[own], people.label[own], votes[own]))
        )
    by_judge = [
        agreement_between(judges.select_annotators(np.array([code])), people)
        for code in range(judges.n_annotators)
    ]
    return People(agreement_within(people), each, by_judge)
