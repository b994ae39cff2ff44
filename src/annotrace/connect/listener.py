"""A small HTTP server that a labelling tool calls when something has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from annotrace.errors import InputError, describe_os_error

PATH = "/annotrace"
# Seconds that a caller may take, and bytes that are read and ignored: that it calls is enough.
TIMEOUT, MAX_BODY = 5.0, 2**16


@contextmanager
def listening(address: str, wake: Event) -> Iterator[str]:
    """Listen on HOST:PORT in a thread; yield the address to call, which sets an event."""
    host, port = _split(address)

    class Handler(BaseHTTPRequestHandler):
        timeout = TIMEOUT

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            self.rfile.read(min(int(length), MAX_BODY) if length.isdecimal() else 0)
            is_known = self.path == PATH
            if is_known:
                wake.set()
            self.send_response(204 if is_known else 404)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise InputError(f"--listen {address}: {describe_os_error(error)}") from None
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{host}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        server.server_close()


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"Expected HOST:PORT such as 127.0.0.1:9090, but got {address!r}.")
    return host.strip("[]"), int(port)
