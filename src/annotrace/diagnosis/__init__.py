"""What can be trusted: metrics and agreement, pure functions of tables and matrices."""

from annotrace.diagnosis.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_kappa,
)
from annotrace.diagnosis.confidence import calibrated_confidence
from annotrace.diagnosis.metrics import (
    confusion_error,
    dominance_margins,
    dominant_draws,
    is_diagonally_dominant,
    is_permuted,
    pooled_confusion,
    skills,
)

__all__ = [
    "calibrated_confidence",
    "cohen_kappa",
    "confusion_error",
    "dominance_margins",
    "dominant_draws",
    "fleiss_kappa",
    "is_diagonally_dominant",
    "is_permuted",
    "krippendorff_alpha",
    "pairwise_kappa",
    "pooled_confusion",
    "skills",
]
