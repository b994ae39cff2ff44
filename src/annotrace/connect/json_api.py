"""Requests to the HTTP API of a labelling tool: JSON in, JSON or a file out, errors in one line.

The token is sent to one server only: redirects are not followed, and it is in no message. Every
request has a time-out, and answers are limited in size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from typing import IO, Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from annotrace.connect.addresses import locate, origin_of
from annotrace.errors import ConnectError, InputError, LimitError
from annotrace.loopback import is_loopback

TIMEOUT = 60.0
MAX_RESPONSE = 2**28
MAX_DETAIL = 300
UNAUTHORIZED, TOO_MANY, SERVER_ERROR = 401, 429, 500
_BUSY = (408, 425, TOO_MANY)


class JsonApi:
    """A server, and how to authorise requests to it.

    Parameters
    ----------
    url : str
        The address, http or https, such as ``http://localhost:8080``.
    authorize : callable
        Returns the header `Authorization`; called with True if the last one was refused.
    remedies : mapping from int to str
        What to do about an HTTP status, for messages.
    timeout : float
        Seconds that a request may wait for the server.
    refused : int
        The HTTP status by which the server refuses an authorisation.
    """

    def __init__(
        self,
        url: str,
        authorize: Callable[[bool], str | None],
        remedies: Mapping[int, str] | None = None,
        timeout: float = TIMEOUT,
        refused: int = UNAUTHORIZED,
    ) -> None:
        self.url = check_url(url)
        self.timeout, self._refused = timeout, refused
        self._authorize, self._remedies = authorize, dict(remedies or {})
        handlers: list[Any] = [_NoRedirects]
        if is_local(self.url):
            handlers.append(ProxyHandler({}))
        self._opener = build_opener(*handlers)

    def get(self, path: str, **query: Any) -> Any:
        """Return what a path holds."""
        return self.request("GET", f"{path}?{urlencode(query)}" if query else path)

    def request(
        self, method: str, path: str, body: Any = None, timeout: float | None = None
    ) -> Any:
        """Send a request, with a body as JSON; return the answer, None if it is empty.

        Raises
        ------
        ConnectError
            If there is no answer, or it is not a success.
        """
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()

        def prepare() -> Request:
            return Request(self.url + path, data, headers, method=method)

        return self._parse(self._send(prepare, timeout or self.timeout, MAX_RESPONSE))

    def download(self, address: str, max_bytes: int) -> bytes:
        """Return a file of this server.

        Parameters
        ----------
        address : str
            Relative, or on this server; see `annotrace.connect.addresses.locate`.
        max_bytes : int

        Raises
        ------
        InputError
            If the address is on another server, which is not asked; a `LimitError` if the file is
            larger.
        ConnectError
            If there is no answer, or it is not a success.
        """
        url = locate(address, self.url)
        content = self._send(lambda: Request(url), self.timeout, max_bytes)
        if len(content) > max_bytes:
            raise LimitError(f"The file has more than {max_bytes:,} bytes.")
        return content

    def _send(self, prepare: Callable[[], Request], timeout: float, max_bytes: int) -> bytes:
        """Send a request, again with new authorisation if that is refused."""
        try:
            return self._receive(prepare(), self._authorize(False), timeout, max_bytes)
        except ConnectError as error:
            renewed = self._authorize(True) if error.status == self._refused else None
            if renewed is None:
                raise
        return self._receive(prepare(), renewed, timeout, max_bytes)

    def _receive(
        self, request: Request, authorization: str | None, timeout: float, max_bytes: int
    ) -> bytes:
        if authorization is not None:
            request.add_header("Authorization", authorization)
        try:
            with self._opener.open(request, timeout=timeout) as response:
                return _read(response, max_bytes)
        except HTTPError as error:
            with error:
                self._raise_refused(error)
        except (URLError, HTTPException, OSError) as error:
            self._raise_unreachable(error)

    def _parse(self, content: bytes) -> Any:
        if len(content) > MAX_RESPONSE:
            raise ConnectError(
                f"{self.url} answered with more than {MAX_RESPONSE:,} bytes. Is it the address of "
                "the labelling tool?"
            )
        try:
            return json.loads(content) if content.strip() else None
        except (ValueError, RecursionError):
            raise ConnectError(
                f"{self.url} did not answer with JSON. Is it the address of the labelling tool?"
            ) from None

    def _raise_refused(self, error: HTTPError) -> NoReturn:
        """Raise the error for an answer that is not a success."""
        status = error.code
        if status in self._remedies:
            remedy = self._remedies[status]
        elif 300 <= status < 400:
            place = origin_of(error.headers.get("Location") or "")
            remedy = f"it redirects to {place}: give that address"
        else:
            remedy = _read_detail(error)
        raise ConnectError(
            f"{self.url} answered {status}{f': {remedy}' if remedy else ''}.",
            status=status,
            is_temporary=status >= SERVER_ERROR or status in _BUSY,
        ) from None

    def _raise_unreachable(self, error: Exception) -> NoReturn:
        reason = getattr(error, "reason", error)
        said = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        raise ConnectError(
            f"Cannot reach {self.url} ({_one_line(said)}): is the server running, and is the "
            "address right?",
            is_temporary=True,
        ) from None


class _NoRedirects(HTTPRedirectHandler):
    """Makes every redirect an error: it would send the token to another address."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def _read(response: HTTPResponse, max_bytes: int) -> bytes:
    """Return the content of an answer, or one byte more than the maximum if it is larger."""
    content = response.read(max_bytes + 1)
    if response.length and len(content) <= max_bytes:
        raise IncompleteRead(content, response.length)
    return content


def check_url(url: str) -> str:
    """Return the address of a server without a final slash, or raise an `InputError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(
            f"Expected an address such as http://localhost:8080, but got {url[:100]!r}."
        )
    if parts.username is not None or parts.password is not None:
        raise InputError("The address must not contain a user name or password. Use the token.")
    if parts.query or parts.fragment or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise InputError(
            f"Expected the address of the server alone, without ? and #, but got {url[:100]!r}."
        )
    return url.rstrip("/")


def is_local(url: str) -> bool:
    """Whether the server is on this machine."""
    return is_loopback(urlsplit(url).hostname or "")


def check_token(token: str) -> str:
    """Return a token without outer blanks, or raise an `InputError` that does not show it."""
    token = token.strip()
    if not re.fullmatch(r"[!-~]+", token):
        raise InputError("The token is empty, or has characters that no token has. Copy it again.")
    return token


def _read_detail(error: HTTPError) -> str:
    """Return what the server says about an error, in one line."""
    try:
        said = json.loads(error.read(2**16))
    except (ValueError, RecursionError, OSError, HTTPException):
        return _one_line(str(error.reason))
    if not isinstance(said, dict):
        return _one_line(str(said))
    parts = [said.get("detail"), said.get("validation_errors")]
    return _one_line("; ".join(str(part) for part in parts if part))


def _one_line(text: str) -> str:
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(printable.split())[:MAX_DETAIL].rstrip(".")
