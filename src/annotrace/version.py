"""The version of the package and of what results depend on."""

import platform
from importlib import import_module

__version__ = "0.1.0"

FORMAT = 6
"""The format of a saved run."""


def versions() -> dict[str, str]:
    """Return the versions of what results depend on."""
    others = {name: str(import_module(name).__version__) for name in ("torch", "numpy")}
    return {"annotrace": __version__, "python": platform.python_version(), **others}
