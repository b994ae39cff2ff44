"""Every method by its short name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from annotrace.errors import InputError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.cross_fitted_em import CrossFittedEM
from annotrace.methods.crowd_classifier import CrowdClassifier
from annotrace.methods.gem import GeneralizedEM
from annotrace.methods.mbem import ModelBootstrappedEM
from annotrace.methods.oracle import Oracle
from annotrace.methods.single_cm import SingleConfusion
from annotrace.methods.soft_bootstrap import SoftBootstrap
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.two_stage import TwoStage
from annotrace.methods.vanilla import Vanilla
from annotrace.methods.wdn import WeightedDoctorNet


@dataclass(frozen=True)
class Method:
    """What there is to know about a method before using it."""

    estimator: type[CrowdEstimator]
    paper: str
    year: int
    summary: str

    @property
    def name(self) -> str:
        """Its short name."""
        return self.estimator.method


_METHODS = (
    Method(CrowdClassifier, "annotrace", 2026, "the recommended recipe, today crossfit"),
    Method(CrossFittedEM, "annotrace", 2026, "networks on folds, judged by held-out matrices"),
    Method(TraceRegularized, "Tanno et al.", 2019, "a confusion matrix an annotator, small trace"),
    Method(GeneralizedEM, "Raykar et al.", 2009, "EM around a network"),
    Method(ModelBootstrappedEM, "Khetan et al.", 2018, "EM that counts the network's predictions"),
    Method(SingleConfusion, "Sukhbaatar et al.", 2014, "one confusion matrix for all"),
    Method(WeightedDoctorNet, "Guan et al.", 2018, "a head an annotator, averaged by weights"),
    Method(SoftBootstrap, "Reed et al.", 2014, "majority votes, and the network's own word"),
    Method(Vanilla, "none", 0, "cross-entropy on majority votes, or on every label"),
    Method(TwoStage, "folklore", 0, "an aggregation, then a classifier on it"),
    Method(Oracle, "Tanno et al.", 2019, "the true confusion matrices given"),
)
METHODS: dict[str, type[CrowdEstimator]] = {entry.name: entry.estimator for entry in _METHODS}


def estimator_class(name: str) -> type[CrowdEstimator]:
    """Give the class of a method by its short name."""
    if name not in METHODS:
        raise InputError(f"There is no method {name!r}; there are {', '.join(METHODS)}.")
    return METHODS[name]


def make(name: str, **settings: Any) -> CrowdEstimator:
    """Make an estimator by the short name of its method.

    Parameters
    ----------
    name : str
        One of those that `list_methods` tells.
    **settings
        Handed to the class.

    Examples
    --------
    >>> make("mbem", steps=3)
    ModelBootstrappedEM(steps=3)
    """
    return estimator_class(name)(**settings)


def list_methods() -> list[Method]:
    """Tell every method: name, paper, year and one line."""
    return list(_METHODS)
