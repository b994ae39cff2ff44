"""Truth and classifier together: one file a paper."""

from annotrace.methods.base import CrowdEstimator
from annotrace.methods.cross_fitted_em import CrossFittedEM
from annotrace.methods.crowd_classifier import CrowdClassifier
from annotrace.methods.gem import GeneralizedEM
from annotrace.methods.mbem import ModelBootstrappedEM
from annotrace.methods.oracle import Oracle
from annotrace.methods.registry import list_methods, make
from annotrace.methods.single_cm import SingleConfusion
from annotrace.methods.soft_bootstrap import SoftBootstrap
from annotrace.methods.trace_regularized import TraceRegularized
from annotrace.methods.two_stage import TwoStage
from annotrace.methods.vanilla import Vanilla
from annotrace.methods.wdn import WeightedDoctorNet

__all__ = [
    "CrossFittedEM",
    "CrowdClassifier",
    "CrowdEstimator",
    "GeneralizedEM",
    "ModelBootstrappedEM",
    "Oracle",
    "SingleConfusion",
    "SoftBootstrap",
    "TraceRegularized",
    "TwoStage",
    "Vanilla",
    "WeightedDoctorNet",
    "list_methods",
    "make",
]
