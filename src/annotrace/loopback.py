"""Whether an address is that of this machine for itself."""

from __future__ import annotations

import ipaddress

NAMES = ("localhost", "localhost.localdomain")


def is_loopback(host: str) -> bool:
    """Whether a host, by name or address, can be reached by this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in NAMES
