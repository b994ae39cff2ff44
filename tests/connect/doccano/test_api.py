import zipfile

import pytest
from fake_doccano import PASSWORD

from annotrace.connect.doccano import api as api_module
from annotrace.connect.doccano.api import DoccanoApi
from annotrace.errors import ConnectError, InputError


@pytest.fixture
def api(url, monkeypatch):
    monkeypatch.setattr(api_module, "PAGE_SIZE", 2)
    return DoccanoApi(url, 7, "admin", PASSWORD)


@pytest.mark.parametrize("n_more", [0, 1])
def test_all_pages_are_read(fake, api, n_more):
    for number in range(7, 7 + n_more):
        fake.add_example(number, "more")
    assert [example["id"] for example in api.examples()] == list(fake.examples)
    assert set(fake.page_sizes) == {2}


def test_an_example_that_is_deleted_while_pages_are_read_is_noticed(fake, api):
    """Example 3 would move to the first page, which was read already."""

    def delete(place):
        if fake.page_sizes == [2]:
            fake.examples.pop(1, None)

    fake.before = delete
    with pytest.raises(ConnectError, match="changed while they were read") as raised:
        api.examples()
    assert raised.value.is_temporary


def test_a_token_is_used_until_it_is_refused(fake, api):
    api.examples()
    assert fake.requests.count("POST /v1/auth/login/") == 1
    fake.tokens.clear()  # Somebody has logged out in the browser.
    api.examples()
    assert fake.requests.count("POST /v1/auth/login/") == 2


def test_a_wrong_password_is_not_shown(url):
    with pytest.raises(ConnectError, match="answered 400: the user name or the password") as raised:
        DoccanoApi(url, 7, "admin", "sesame").read_project()
    assert "sesame" not in str(raised.value)


def test_annotators_may_not_export(url):
    with pytest.raises(ConnectError, match=r"answered 403: the user may not.*--user"):
        DoccanoApi(url, 7, "ann", PASSWORD).export()


def test_an_unknown_project(url):
    with pytest.raises(ConnectError, match=r"answered 404: there is no such project.*--project"):
        DoccanoApi(url, 8, "admin", PASSWORD).read_project()


def test_another_server_is_recognised(fake, url):
    fake.failures.append(("POST", 200, {"hello": "world"}))
    with pytest.raises(ConnectError, match="does not answer as doccano"):
        DoccanoApi(url, 7, "admin", PASSWORD).read_project()


def test_an_export_has_a_file_for_each_member(fake, api):
    exported = api.export()
    assert list(exported) == ["admin", "ann", "bo.b", "cy"]
    assert [record["label"] for record in exported["bo.b"]] == [
        *(["Positive"], ["Negative"], ["Positive"], ["Negative"], [], [])
    ]
    assert fake.requests.count("GET /v1/projects/7/download") == 2


def test_an_export_that_is_never_ready(fake, api, monkeypatch):
    monkeypatch.setattr(api_module, "PATIENCE", 0.05)
    fake.failures.extend([("GET /v1/projects/7/download", 200, {"status": "Not ready"})] * 1000)
    with pytest.raises(ConnectError, match="Is `doccano task` running"):
        api.export()


def test_an_export_that_fails(fake, api):
    fake.failures.append(("GET /v1/projects/7/download", 500, b"<!doctype html>"))
    with pytest.raises(ConnectError, match="the log of `doccano task` says why") as raised:
        api.export()
    assert not raised.value.is_temporary


def test_a_damaged_export(fake, api, tmp_path):
    fake.failures.append(("GET /v1/projects/7/download", 200, b"PK damaged"))
    with pytest.raises(InputError, match="export of project 7"):
        api.export()
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("ann.jsonl", "{")
    content = (tmp_path / "export.zip").read_bytes()
    fake.failures.append(("GET /v1/projects/7/download", 200, content))
    with pytest.raises(InputError, match="a line is not JSON"):
        api.export()


def test_counts_of_labels(fake, api):
    assert api.label_counts()["ann"] == {"Positive": 3, "Negative": 2, "Neutral": 0}
    fake.members.remove(2)
    assert api.label_counts() is None
