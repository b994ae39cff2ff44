"""Every method by its short name."""

from __future__ import annotations

from typing import Any

from annotrace.methods.annot_mix import AnnotMix
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.coin_net import COINNet
from annotrace.methods.conal import CoNAL
from annotrace.methods.cross_fitted_em import CrossFittedEM
from annotrace.methods.crowd_classifier import CrowdClassifier
from annotrace.methods.crowd_layer import CrowdLayer
from annotrace.methods.gem import GeneralizedEM
from annotrace.methods.geo_crowd_layer import GeoCrowdLayer
from annotrace.methods.item_dependent import ItemDependentEM
from annotrace.methods.madl import MaDL
from annotrace.methods.mbem import ModelBootstrappedEM
from annotrace.methods.oracle import Oracle
from annotrace.methods.single_cm import SingleConfusion
from annotrace.methods.soft_bootstrap import SoftBootstrap
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.two_stage import TwoStage
from annotrace.methods.union_net import UnionNet
from annotrace.methods.vanilla import Vanilla
from annotrace.methods.wdn import WeightedDoctorNet
from annotrace.registry import Entry, Registry

METHODS: Registry[CrowdEstimator] = Registry(
    "method",
    Entry("auto", CrowdClassifier, "the recommended recipe, at present crossfit", year=2026),
    Entry("crossfit", CrossFittedEM, "networks on folds, judged by held-out matrices", year=2026),
    Entry(
        "trace",
        TraceRegularized,
        "one confusion matrix per annotator, small trace",
        "Tanno et al.",
        2019,
    ),
    Entry(
        "geo-crowd-layer",
        GeoCrowdLayer,
        "one confusion matrix per annotator, large volume",
        "Ibrahim et al.",
        2023,
    ),
    Entry("crowd-layer", CrowdLayer, "a layer of weights per annotator", "Rodrigues et al.", 2018),
    Entry("union-net", UnionNet, "one transition matrix to all labels", "Wei et al.", 2022),
    Entry("conal", CoNAL, "common and individual weights of annotators", "Chu et al.", 2021),
    Entry("madl", MaDL, "an annotator network, labels weighted by density", "Herde et al.", 2023),
    Entry("annot-mix", AnnotMix, "mixup of items and annotators", "Herde et al.", 2024),
    Entry("coin-net", COINNet, "confusion matrices and outliers", "Nguyen et al.", 2024),
    Entry("gem", GeneralizedEM, "EM around a network", "Raykar et al.", 2009),
    Entry(
        "mbem",
        ModelBootstrappedEM,
        "EM that counts the network's predictions",
        "Khetan et al.",
        2018,
    ),
    Entry(
        "single-cm",
        SingleConfusion,
        "one confusion matrix for all annotators",
        "Sukhbaatar et al.",
        2014,
    ),
    Entry("wdn", WeightedDoctorNet, "one head per annotator, averaged", "Guan et al.", 2018),
    Entry(
        "soft-bootstrap",
        SoftBootstrap,
        "majority votes mixed with the network's own predictions",
        "Reed et al.",
        2014,
    ),
    Entry("vanilla", Vanilla, "cross-entropy on majority votes, or on every label", "none"),
    Entry("two-stage", TwoStage, "an aggregation, then a classifier on it", "folklore"),
    Entry(
        "item-dependent",
        ItemDependentEM,
        "crossfit, with annotators who may fail in a region",
        year=2026,
    ),
    Entry("oracle", Oracle, "the true confusion matrices given", "Tanno et al.", 2019),
)


def make(name: str, **params: Any) -> CrowdEstimator:
    """Return an estimator by the short name of its method.

    Parameters
    ----------
    name : str
        One of `list_methods`.
    **params
        Passed to the class.

    Examples
    --------
    >>> make("mbem", n_steps=3)
    ModelBootstrappedEM(n_steps=3)
    """
    return METHODS.make(name, **params)


def list_methods() -> list[Entry[CrowdEstimator]]:
    """Return every method with its name, paper, year and summary."""
    return list(METHODS.values())
