"""Requests: errors in one line, and a token that goes to one server and into no message."""

import socket

import pytest
from fake_label_studio import TOKEN, FakeLabelStudio
from fake_server import serving

from annotrace.connect import json_api
from annotrace.connect.json_api import JsonApi, check_token, check_url, is_local
from annotrace.errors import ConnectError, InputError, LimitError


def api_of(url, **options):
    return JsonApi(url, lambda renew: None if renew else f"Token {TOKEN}", **options)


def test_an_answer_is_json(fake, url):
    assert api_of(url).get("/api/projects/7/")["id"] == 7


@pytest.mark.parametrize(
    ("status", "temporary"), [(500, True), (503, True), (429, True), (400, False)]
)
def test_errors_have_the_status_and_the_reason_in_one_line(fake, url, status, temporary):
    fake.failures.append(("GET", status, {"detail": "a\nlong\x1b reason."}))
    with pytest.raises(ConnectError, match=rf"answered {status}: a long reason\.$") as raised:
        api_of(url).get("/api/projects/7/")
    assert raised.value.status == status
    assert raised.value.is_temporary == temporary


def test_a_remedy_replaces_the_reason(fake, url):
    api = JsonApi(url, lambda renew: None, {401: "check the token"})
    with pytest.raises(ConnectError, match="answered 401: check the token"):
        api.get("/api/projects/7/")


def test_no_server(url):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectError, match=r"refused.*is the address right") as raised:
        api_of(f"http://127.0.0.1:{port}").get("/")
    assert raised.value.is_temporary


def test_a_server_that_does_not_answer_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectError, match="timed out"):
            api_of(url, timeout=0.2).get("/")


def test_a_connection_that_is_cut(fake, url):
    fake.failures.append(("GET", "lost"))
    with pytest.raises(ConnectError, match="Cannot reach") as raised:
        api_of(url).get("/api/projects/7/")
    assert raised.value.is_temporary


def test_redirects_are_not_followed(fake, url):
    other = FakeLabelStudio()
    with serving(other) as elsewhere:
        fake.failures.append(("GET", 302, f"{elsewhere}/api/projects/7/".encode()))
        with pytest.raises(ConnectError, match=f"redirects to {elsewhere}: give that address"):
            api_of(url).get("/api/projects/7/")
    assert other.requests == []


@pytest.mark.parametrize("content", [b"<html>", b"[" * 100_000])
def test_an_answer_that_is_not_json(fake, url, content):
    fake.failures.append(("GET", 200, content))
    with pytest.raises(ConnectError, match="did not answer with JSON"):
        api_of(url).get("/api/projects/7/")


def test_answers_are_limited_in_size(fake, url, monkeypatch):
    monkeypatch.setattr(json_api, "MAX_RESPONSE", 100)
    fake.failures.append(("GET", 200, b"1" * 101))
    with pytest.raises(ConnectError, match="more than 100 bytes"):
        api_of(url).get("/api/projects/7/")


@pytest.mark.parametrize(
    "url",
    ["localhost:8080", "ftp://a", "file:///etc/passwd", "http://", "http://a/?b=1", "http://a#b",
     "http://a b"],
)  # fmt: skip
def test_addresses_that_are_refused(url):
    with pytest.raises(InputError, match="Expected"):
        check_url(url)


def test_an_address_has_no_password():
    with pytest.raises(InputError, match="must not contain") as raised:
        check_url("http://me:secret@host")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [("http://localhost:80", True), ("http://127.0.0.9", True), ("http://[::1]:9", True),
     ("https://localhost.example.com", False), ("http://10.0.0.1", False)],
)  # fmt: skip
def test_loopback(url, expected):
    assert is_local(url) == expected


@pytest.mark.parametrize("token", ["", "  ", "abc\ndef", "abc def", "tök"])
def test_tokens_that_no_header_can_have_are_refused_unseen(token):
    with pytest.raises(InputError) as raised:
        check_token(token)
    assert not token.strip() or token not in str(raised.value)


def test_a_token_is_trimmed():
    assert check_token(f" {TOKEN}\n") == TOKEN


PATH = "/data/upload/7/a%20b.png"


def test_a_file_is_downloaded_with_the_token(fake, url):
    fake.files[PATH] = b"\x00\xff"
    assert api_of(url).download(PATH, 2) == b"\x00\xff"
    assert api_of(url).download(f"{url}{PATH}", 2) == b"\x00\xff"
    with pytest.raises(ConnectError, match="answered 401"):
        JsonApi(url, lambda renew: None).download(PATH, 2)


def test_a_file_is_limited_in_size(fake, url):
    fake.files[PATH] = b"123"
    with pytest.raises(LimitError, match="more than 2 bytes"):
        api_of(url).download(PATH, 2)


def test_no_file_of_another_server_is_asked_for(fake, url):
    other = FakeLabelStudio()
    with serving(other) as elsewhere, pytest.raises(InputError, match=f"It is on {elsewhere}"):
        api_of(url).download(f"{elsewhere}{PATH}", 2)
    assert fake.requests == other.requests == []


def test_a_file_that_is_cut_is_no_file(fake, url):
    fake.files[PATH], fake.n_withheld = b"1234", 1
    with pytest.raises(ConnectError, match=r"Cannot reach .*3 bytes read, 1 more") as raised:
        api_of(url).download(PATH, 10)
    assert raised.value.is_temporary


def test_authorisation_is_renewed_for_files_too(fake, url):
    fake.files[PATH] = b"1"
    api = JsonApi(url, lambda renew: f"Token {TOKEN}" if renew else "Token old")
    assert api.download(PATH, 1) == b"1"


def test_an_authorisation_is_renewed_at_the_status_that_the_server_refuses_with(fake, url):
    fake.failures.append(("GET", 403, {}))
    api = JsonApi(url, lambda renew: f"Token {TOKEN if renew else 'old'}", refused=403)
    assert api.get("/api/projects/7/")["id"] == 7
