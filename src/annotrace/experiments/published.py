"""The paper's own numbers (Tanno et al., CVPR 2019), as printed: table 1 and figure 7 (d)."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """Mean and deviation of accuracy in per cent and, where given, of CM error x 100."""

    accuracy: float
    accuracy_deviation: float
    cm_error: float | None = None
    cm_error_deviation: float | None = None


CIFAR10 = {
    4: {
        "trace": Published(81.23, 0.21, 0.72, 0.01),
        "no-trace": Published(80.29, 0.65, 1.37, 0.12),
        "mbem": Published(73.33, 0.46, 2.53, 0.24),
        "gem": Published(70.49, 0.23, 6.13, 0.28),
        "single-cm": Published(68.82, 2.27),
        "wdn": Published(60.11, 1.80),
        "soft-bootstrap": Published(54.73, 1.33),
        "vanilla": Published(52.33, 0.31),
    },
    1: {
        "trace": Published(77.65, 0.31, 1.22, 0.01),
        "no-trace": Published(76.31, 0.49, 1.46, 0.27),
        "mbem": Published(55.97, 1.23, 4.58, 0.64),
        "gem": Published(53.38, 0.71, 4.47, 0.64),
        "single-cm": Published(59.91, 0.98),
        "wdn": Published(57.98, 0.14),
        "soft-bootstrap": Published(42.91, 1.08),
        "vanilla": Published(36.04, 1.04),
    },
}
"""By labels an image: four annotators label each, or one of them does."""

CARDIAC = {
    "trace": Published(75.57, 0.16, 11.48, 0.48),
    "no-trace": Published(70.99, 3.31, 15.22, 0.94),
    "mbem": Published(73.91, 0.11, 12.18, 0.29),
    "wdn": Published(59.15, 1.60),
    "single-cm": Published(74.38, 0.29),
    "soft-bootstrap": Published(72.99, 0.17),
    "vanilla": Published(70.95, 0.44),
}

CARDIAC_NOTE = (
    "**Simulated.** The paper's numbers are of a private set of ultrasound images, ours of images "
    "drawn by `annotrace.experiments.cardiac_views`: the orders of methods may be compared, the "
    "numbers may not."
)
