"""Truth and classifier together: one file per paper."""

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
from annotrace.methods.loading import load
from annotrace.methods.madl import MaDL
from annotrace.methods.mbem import ModelBootstrappedEM
from annotrace.methods.network_estimator import NetworkEstimator
from annotrace.methods.oracle import Oracle
from annotrace.methods.recipe import Recipe
from annotrace.methods.registry import METHODS, list_methods, make
from annotrace.methods.scorers import label_likelihood_scorer, truth_accuracy_scorer
from annotrace.methods.single_cm import SingleConfusion
from annotrace.methods.soft_bootstrap import SoftBootstrap
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.two_stage import TwoStage
from annotrace.methods.union_net import UnionNet
from annotrace.methods.vanilla import Vanilla
from annotrace.methods.wdn import WeightedDoctorNet

__all__ = [
    "METHODS",
    "AnnotMix",
    "COINNet",
    "CoNAL",
    "CrossFittedEM",
    "CrowdClassifier",
    "CrowdEstimator",
    "CrowdLayer",
    "GeneralizedEM",
    "GeoCrowdLayer",
    "ItemDependentEM",
    "MaDL",
    "ModelBootstrappedEM",
    "NetworkEstimator",
    "Oracle",
    "Recipe",
    "SingleConfusion",
    "SoftBootstrap",
    "TraceRegularized",
    "TwoStage",
    "UnionNet",
    "Vanilla",
    "WeightedDoctorNet",
    "label_likelihood_scorer",
    "list_methods",
    "load",
    "make",
    "truth_accuracy_scorer",
]
