"""What can be trusted: functions of a `CrowdResult`, or of tables, matrices and posteriors."""

from annotrace.crowd.skills import skills
from annotrace.diagnosis.agreement import (
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    pairwise_kappa,
)
from annotrace.diagnosis.calibration import calibration_error, reliability_curve
from annotrace.diagnosis.confidence import calibrated_posterior, confidence
from annotrace.diagnosis.failing_regions import FailingRegion, failing_regions
from annotrace.diagnosis.fitted import FittedCrowd
from annotrace.diagnosis.flags import Flag
from annotrace.diagnosis.metrics import (
    balanced_accuracy,
    confusion_error,
    dominance_margins,
    dominant_draws,
    is_diagonally_dominant,
    is_permuted,
    per_class,
)
from annotrace.diagnosis.reasons import Reason
from annotrace.diagnosis.suspects import rank_suspects
from annotrace.diagnosis.verdict import Diagnosis, diagnose
from annotrace.diagnosis.wording import describe_flags, describe_reason

__all__ = [
    "Diagnosis",
    "FailingRegion",
    "FittedCrowd",
    "Flag",
    "Reason",
    "balanced_accuracy",
    "calibrated_posterior",
    "calibration_error",
    "cohen_kappa",
    "confidence",
    "confusion_error",
    "describe_flags",
    "describe_reason",
    "diagnose",
    "dominance_margins",
    "dominant_draws",
    "failing_regions",
    "fleiss_kappa",
    "is_diagonally_dominant",
    "is_permuted",
    "krippendorff_alpha",
    "pairwise_kappa",
    "per_class",
    "rank_suspects",
    "reliability_curve",
    "skills",
]
