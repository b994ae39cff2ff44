"""Panels of judges, such as LLMs, against gold items or people."""

from annotrace.judges.evaluate import evaluate
from annotrace.judges.replacement import Comparison, Replacement, alternative_annotator_test
from annotrace.judges.result import Judge, JudgePanel

__all__ = [
    "Comparison",
    "Judge",
    "JudgePanel",
    "Replacement",
    "alternative_annotator_test",
    "evaluate",
]
