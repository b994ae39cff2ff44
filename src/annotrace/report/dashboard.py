"""A small local server that shows the report of a run, and each newer one as it is written.

It can only read: it answers GET and HEAD, for three addresses that begin with a random token. The
page asks it every two seconds whether there is a newer report, and loads nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import socket
from functools import cached_property
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from annotrace.loopback import is_loopback
from annotrace.report.live_report import LiveReport
from annotrace.report.page import render_template, template_text

_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Dashboard(ThreadingHTTPServer):
    """A server of one report.

    Parameters
    ----------
    report : LiveReport
    host : str
        The address to listen on; by default this machine alone can reach it.
    port : int
        0 for any that is free.

    Attributes
    ----------
    url : str
        With the token: whoever has it can see the report.
    """

    daemon_threads = True

    def __init__(self, report: LiveReport, host: str = "127.0.0.1", port: int = 0) -> None:
        self.report, self.host = report, host
        self.token = secrets.token_urlsafe(24)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_address[1]}/{self.token}/"

    @property
    def is_local(self) -> bool:
        """Whether this machine alone can reach the server."""
        return is_loopback(self.host)

    @cached_property
    def page(self) -> bytes:
        """The page around the report."""
        name = Path(self.report.run).resolve().name
        script = template_text("dashboard.js")
        return render_template("dashboard.html.jinja", script=script, run=name).encode("utf-8")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that close a connection early."""


class _Handler(BaseHTTPRequestHandler):
    """Answers to requests."""

    server: Dashboard
    server_version, sys_version = "annotrace", ""
    timeout = 10

    def do_GET(self) -> None:
        if not self._names_this_server():
            self._answer(HTTPStatus.MISDIRECTED_REQUEST, "text/plain", b"Wrong host.\n")
            return
        token, _, place = urlsplit(self.path).path.removeprefix("/").partition("/")
        pages = {"": self._page, "report": self._report, "state": self._state}
        if compare_digest(token.encode(), self.server.token.encode()) and place in pages:
            pages[place]()
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"Not found.\n")

    do_HEAD = do_GET  # noqa: N815

    def _refuse(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"Read only.\n")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815

    def _page(self) -> None:
        digest = hashlib.sha256(template_text("dashboard.js").encode()).digest()
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; frame-src 'self'; "
            f"img-src data:; script-src 'sha256-{base64.b64encode(digest).decode()}'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page, policy)

    def _report(self) -> None:
        shown, _ = self.server.report.current()
        # The page has a policy of its own, which both must allow.
        policy = (
            "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'self'"
        )
        self._answer(HTTPStatus.OK, "text/html; charset=utf-8", shown.page, policy)

    def _state(self) -> None:
        shown, problem = self.server.report.current()
        state = {"version": shown.version, "verdict": shown.verdict, "problem": problem}
        content = json.dumps(state | shown.counts).encode()
        self._answer(HTTPStatus.OK, "application/json", content)

    def _names_this_server(self) -> bool:
        """Whether the browser asked for this server, and not for a name that leads here by DNS."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        return not self.server.is_local or host in _LOOPBACK_NAMES

    def _answer(
        self, status: HTTPStatus, kind: str, content: bytes, policy: str = "default-src 'none'"
    ) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(content))}
        for name, value in (headers | _HEADERS | {"Content-Security-Policy": policy}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the addresses have the token."""
