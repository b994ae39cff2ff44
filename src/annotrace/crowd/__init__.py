"""The annotator model and its maths: likelihoods, posteriors, counts, priors and losses."""

from annotrace.crowd.annotator_model import AnnotatorModel, FixedMatrices, MatrixModel
from annotrace.crowd.confusion import Confusion
from annotrace.crowd.em import expected_counts, posterior
from annotrace.crowd.label_index import LabelIndex
from annotrace.crowd.losses import crowd_nll, joint_nll, label_log_likelihood, trace_regularized_nll
from annotrace.crowd.pool import pooled_confusion
from annotrace.crowd.regional import RegionalAnnotators
from annotrace.crowd.result import CrowdResult
from annotrace.crowd.structures import STRUCTURES

__all__ = [
    "STRUCTURES",
    "AnnotatorModel",
    "Confusion",
    "CrowdResult",
    "FixedMatrices",
    "LabelIndex",
    "MatrixModel",
    "RegionalAnnotators",
    "crowd_nll",
    "expected_counts",
    "joint_nll",
    "label_log_likelihood",
    "pooled_confusion",
    "posterior",
    "trace_regularized_nll",
]
