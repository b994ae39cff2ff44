"""What can be trusted: pure functions of tables, matrices and posteriors."""

from annotrace.diagnosis.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_kappa,
)
from annotrace.diagnosis.calibration import calibration_error, reliability_curve
from annotrace.diagnosis.confidence import calibrated_confidence
from annotrace.diagnosis.metrics import (
    balanced_accuracy,
    confusion_error,
    dominance_margins,
    dominant_draws,
    is_diagonally_dominant,
    is_permuted,
    per_class,
    pooled_confusion,
    skills,
)
from annotrace.diagnosis.suspects import rank_suspects
from annotrace.diagnosis.uncertainty import CrowdPosterior, crowd_posterior
from annotrace.diagnosis.verdict import Diagnosis, diagnose

__all__ = [
    "CrowdPosterior",
    "Diagnosis",
    "balanced_accuracy",
    "calibrated_confidence",
    "calibration_error",
    "cohen_kappa",
    "confusion_error",
    "crowd_posterior",
    "diagnose",
    "dominance_margins",
    "dominant_draws",
    "fleiss_kappa",
    "is_diagonally_dominant",
    "is_permuted",
    "krippendorff_alpha",
    "pairwise_kappa",
    "per_class",
    "pooled_confusion",
    "rank_suspects",
    "reliability_curve",
    "skills",
]
