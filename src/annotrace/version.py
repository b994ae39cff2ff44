"""The version of the package, in the one place that says it, and of what results depend on."""

import platform
from importlib import import_module

__version__ = "0.1.0"

FORMAT = 1
"""Of a run's folder."""


def versions() -> dict[str, str]:
    """Tell the versions of what results depend on."""
    others = {name: str(import_module(name).__version__) for name in ("torch", "numpy")}
    return {"annotrace": __version__, "python": platform.python_version(), **others}
