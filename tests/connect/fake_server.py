"""What the small servers of the tests have in common: requests over HTTP, and faults on demand."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from urllib.parse import parse_qs, urlsplit


class FakeServer:
    """The state of a server; `ROUTES` of a subclass are its answers.

    Attributes
    ----------
    requests : list of str
        Such as "GET /api/users/".
    failures : list of tuples
        Part of a request, and the status and content that answer it once; or "lost", if the request
        is done, but the answer does not arrive.
    n_withheld : int
        Bytes that every answer lacks, as if the connection was cut.
    before : callable, or None
        Called with each request.
    """

    ROUTES = ()

    def __init__(self):
        self.requests, self.failures, self.n_withheld = [], [], 0
        self.before, self.clock = None, 0

    def tick(self):
        self.clock += 1
        return self.clock

    def user_of(self, place, authorization):
        """Return the user that a header authorises, None if nobody."""
        raise NotImplementedError

    def handle(self, place, query, body, user):
        """Return the status and the answer of a request."""
        for pattern, answer in self.ROUTES:
            if found := re.fullmatch(pattern, place):
                return answer(self, query, body, user, *map(int, found.groups()))
        return 404, {"detail": "Not found."}

    def reply(self, place, query, body, authorization):
        """Return the status and the answer of a request, or a failure; no status is no answer."""
        for failure in self.failures:
            if failure[0] in place:
                self.failures.remove(failure)
                if failure[1] == "lost":
                    self.handle(place, query, body, 1)
                    return None, None
                return failure[1:]
        return self.handle(place, query, body, self.user_of(place, authorization))


class Handler(BaseHTTPRequestHandler):
    fake = None
    lock = Lock()

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        fake, query = self.fake, {name: values[0] for name, values in query.items()}
        place = f"{self.command} {path}"
        with self.lock:
            fake.requests.append(place)
            if fake.before is not None:
                fake.before(place)
            status, said = fake.reply(place, query, body, self.headers.get("Authorization", ""))
        if status is None:  # As if the server was killed: no answer.
            self.close_connection = True
            return
        content = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", said.decode())
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) - fake.n_withheld])

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

    def log_message(self, *args):
        pass


@contextmanager
def serving(fake, port=0):
    """Serve a fake in a thread, and yield its address."""
    handler = type("FakeHandler", (Handler,), {"fake": fake, "lock": Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
