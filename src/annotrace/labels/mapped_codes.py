"""Codes of large tables on disk: the system keeps in memory what is used."""

from __future__ import annotations

import tempfile

import numpy as np

from annotrace.labels.vocabulary import Codes

MAPPED_FROM = 2**25
"""Labels from which the codes of a table that is read are on disk."""


def map_large(codes: Codes) -> Codes:
    """Return codes that nobody else has, read-only, so that a table need not copy them.

    Those of large tables are moved to a file without a name in the folder of temporary files, which
    the environment variable TMPDIR chooses. The system removes it together with the last array.
    """
    if len(codes) >= MAPPED_FROM:
        with tempfile.TemporaryFile() as file:
            codes.tofile(file)
            file.flush()
            return np.memmap(file, codes.dtype, "r")
    view = codes.view()
    view.flags.writeable = False
    return view
