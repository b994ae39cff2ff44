"""What can be trusted: pure functions of tables, matrices and posteriors."""

from annotrace.diagnosis.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_kappa,
)
from annotrace.diagnosis.metrics import (
    confusion_error,
    dominance_margins,
    dominant_draws,
    is_diagonally_dominant,
    skills,
)
from annotrace.diagnosis.verdict import Diagnosis, diagnose

__all__ = [
    "Diagnosis",
    "cohen_kappa",
    "confusion_error",
    "diagnose",
    "dominance_margins",
    "dominant_draws",
    "fleiss_kappa",
    "is_diagonally_dominant",
    "krippendorff_alpha",
    "pairwise_kappa",
    "skills",
]
