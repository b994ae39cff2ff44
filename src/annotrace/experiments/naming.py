"""How methods and densities are called and drawn, alike in every table and figure."""

from __future__ import annotations

from typing import NamedTuple


class Look(NamedTuple):
    """A method in a table or figure: its name, colour, marker and line."""

    name: str
    colour: str = "#555555"
    marker: str = "."
    line: str = "-"


# Told apart by people who do not see red or green (Okabe and Ito), and by markers without colour.
_LOOKS = {
    "trace": Look("trace", "#0072B2", "o"),
    "no-trace": Look("without the trace", "#D55E00", "s"),
    "mbem": Look("MBEM", "#D55E00", "s"),
    "gem": Look("generalized EM", "#E69F00", "^"),
    "single-cm": Look("single CM", "#009E73", "D"),
    "wdn": Look("Weighted Doctor Net", "#CC79A7", "v"),
    "soft-bootstrap": Look("soft bootstrap", "#E69F00", "^"),
    "vanilla": Look("vanilla", "#56B4E9", "s"),
    "two-stage": Look("two-stage", "#8C6D31", "P"),
    "oracle": Look("oracle", "#000000", "", "--"),
    "crossfit": Look("cross-fitted EM (ours)", "#6A3D9A", "X"),
    "auto": Look("CrowdClassifier (ours)", "#6A3D9A", "*"),
    "annotators": Look("annotators", "#888888", "", ":"),
}


def look(method: str) -> Look:
    """Give how a method is shown; one without a look of its own goes by its short name."""
    return _LOOKS.get(method, Look(method))


def density_name(density: int) -> str:
    """Say how many labels an item has."""
    return "one label an item" if density == 1 else f"dense labels ({density} an item)"
