"""The lock of what all threads of a process share."""

from __future__ import annotations

import threading

GLOBAL_STATE = threading.RLock()
"""Held while process-wide state of torch or Python, such as the filters of warnings, is changed or
is not the caller's."""
