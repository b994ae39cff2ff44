"""The local server of a report: what it answers, what it refuses, and how the page follows."""

import http.client
import json
import re
import socket
from threading import Thread
from urllib.parse import urlsplit

import pytest

import annotrace as at
from annotrace.report.dashboard import Dashboard
from annotrace.report.live_report import LiveReport


@pytest.fixture
def run(tmp_path, aggregated):
    folder = tmp_path / "my <run>"
    aggregated.save(folder)
    at.write_report(aggregated, folder / "report.html", title="First")
    return folder


@pytest.fixture
def dashboard(run):
    with Dashboard(LiveReport(run)) as served:
        thread = Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def ask(dashboard, place="", method="GET", **headers):
    parts = urlsplit(dashboard.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    path = place if place.startswith("/") else parts.path + place
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_the_page_the_report_and_the_state(dashboard, run, aggregated):
    answer, page = ask(dashboard)
    assert answer.status == 200
    assert b"my &lt;run&gt;" in page
    assert ask(dashboard, "report")[1] == (run / "report.html").read_bytes()
    state = json.loads(ask(dashboard, "state")[1])
    assert state["labels"] == aggregated.table_.n_labels
    assert (state["verdict"], state["problem"]) == (aggregated.diagnosis_.verdict, "")
    head, content = ask(dashboard, "report", "HEAD")
    assert int(head.headers["Content-Length"]) == (run / "report.html").stat().st_size
    assert content == b""


@pytest.mark.parametrize("place", ["", "report", "state", "nothing"])
def test_every_answer_has_strict_headers(dashboard, place):
    headers = ask(dashboard, place)[0].headers
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers
    assert headers["Server"].strip() == "annotrace"


@pytest.mark.parametrize(
    "place", ["/", "/report", "/wrong/", "/wrong/report", "report/", "../state"]
)
def test_without_the_token_nothing_is_there(dashboard, place):
    answer, content = ask(dashboard, place)
    assert (answer.status, content) == (404, b"Not found.\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(dashboard, method, run):
    before = (run / "report.html").read_bytes()
    assert ask(dashboard, "report", method)[0].status == 405
    assert (run / "report.html").read_bytes() == before


def test_a_name_that_leads_here_by_dns_is_refused(dashboard):
    port = dashboard.server_address[1]
    assert ask(dashboard, Host=f"evil.example:{port}")[0].status == 421
    assert ask(dashboard, Host=f"localhost:{port}")[0].status == 200


def test_tokens_are_long_and_differ(run):
    urls = set()
    for _ in range(2):
        with Dashboard(LiveReport(run)) as served:
            urls.add(served.url)
            assert re.fullmatch(r"http://127.0.0.1:\d+/[\w-]{32}/", served.url)
    assert len({url.split("/")[3] for url in urls}) == 2


def test_requests_that_end_early_are_not_shouted_about(dashboard, capfd):
    with socket.create_connection(dashboard.server_address[:2]) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
    assert ask(dashboard)[0].status == 200
    assert dashboard.token not in "".join(capfd.readouterr())


def test_the_page_follows_the_run_in_a_browser(browser, dashboard, run, aggregated):
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    heard, asked = [], []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(dashboard.url)
    frame = page.frame_locator("#report")
    frame.get_by_text("First").first.wait_for()
    page.get_by_text(f"{aggregated.table_.n_labels:,} labels").wait_for()
    page.frames[1].evaluate("scrollTo(0, 500)")
    at.write_report(aggregated, run / "report.html", title="Second")
    frame.get_by_text("Second").first.wait_for(timeout=10_000)
    page.get_by_text("updated at").wait_for()
    page.wait_for_function("document.getElementById('report').contentWindow.scrollY > 400")
    assert heard == []
    assert all(url.startswith((dashboard.url, "data:")) for url in asked)
    page.context.close()
