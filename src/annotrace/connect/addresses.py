"""Addresses of files in the items of a labelling tool.

Whoever adds an item writes its address, so that a file is only read from the labelling tool itself:
else anybody who adds items could have any address called, within a private network too, and would
be sent the token.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from annotrace.errors import InputError, LimitError

_PORTS = {"http": 80, "https": 443}
# What stays as it is: an address is usually quoted already.
_SAFE = "%/:?#[]@!$&'()*+,;=~"
_DATA = re.compile(r"data:image/[\w.+-]+(;[\w.+=-]+)*;base64,", re.IGNORECASE)
REMEDY = (
    "Download the images, name them by item (12.jpg), and use `annotrace fit EXPORT --images "
    "FOLDER`."
)


def locate(address: str, server: str) -> str:
    """Return the absolute address of a file on a server, or raise an `InputError`.

    Parameters
    ----------
    address : str
        Relative, or absolute with the scheme, host and port of the server.
    server : str
        The address of the server.
    """
    here = urlsplit(server)
    try:
        there = urlsplit(urljoin(f"{server}/", address.strip()))
        is_here = _origin(there) == _origin(here)
        path, query = quote(there.path, safe=_SAFE), quote(there.query, safe=_SAFE)
    except ValueError:
        raise InputError("It is not an address.") from None
    if there.scheme not in _PORTS:
        raise InputError(f"Addresses that begin with {there.scheme[:20]}: are not read. {REMEDY}")
    if not is_here:
        raise InputError(
            f"It is on {origin_of(there.geturl())}, and files are read only from "
            f"{origin_of(server)}. {REMEDY}"
        )
    return urlunsplit((here.scheme, here.netloc, path, query, ""))


def is_data(address: str) -> bool:
    """Whether an address is a data URI, which holds the file itself."""
    return address[:5].lower() == "data:"


def read_data(address: str, max_bytes: int) -> bytes:
    """Return the image in a data URI, or raise an `InputError`."""
    begin = _DATA.match(address[:200])
    if begin is None:
        raise InputError("Expected a data URI that begins with data:image/...;base64, .")
    try:
        content = base64.b64decode(address[begin.end() :], validate=True)
    except ValueError:
        raise InputError("The data URI is not valid base64.") from None
    if len(content) > max_bytes:
        raise LimitError(f"The file has more than {max_bytes:,} bytes.")
    return content


def origin_of(address: str) -> str:
    """Return the scheme and host of an address, without what may be secret in the rest."""
    try:
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "a path"
    except ValueError:
        return "another address"


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
