"""How methods and densities are called and coloured, alike in every table and figure."""

from __future__ import annotations

NAMES = {
    "trace": "trace (the paper's)",
    "no-trace": "without the trace",
    "mbem": "MBEM",
    "gem": "generalized EM",
    "single-cm": "single CM",
    "wdn": "Weighted Doctor Net",
    "soft-bootstrap": "soft bootstrap",
    "vanilla": "vanilla",
    "two-stage": "two-stage",
    "oracle": "oracle",
    "crossfit": "cross-fitted EM (ours)",
    "annotators": "annotators",
}

# Told apart by people who do not see red or green (Okabe and Ito), and by markers without colour.
COLOURS = {
    "trace": "#0072B2",
    "no-trace": "#D55E00",
    "mbem": "#D55E00",
    "gem": "#E69F00",
    "single-cm": "#009E73",
    "wdn": "#CC79A7",
    "soft-bootstrap": "#E69F00",
    "vanilla": "#56B4E9",
    "two-stage": "#8C6D31",
    "oracle": "#000000",
    "crossfit": "#6A3D9A",
    "annotators": "#888888",
}
MARKERS = {
    "trace": "o",
    "no-trace": "s",
    "mbem": "s",
    "gem": "^",
    "single-cm": "D",
    "wdn": "v",
    "soft-bootstrap": "^",
    "vanilla": "s",
    "two-stage": "P",
    "oracle": "",
    "crossfit": "X",
    "annotators": "",
}


def density_name(density: int) -> str:
    """Say how many labels an item has."""
    return "one label an item" if density == 1 else f"dense labels ({density} an item)"
