import pytest
from fake_label_studio import TOKEN

from annotrace.connect.label_studio import api as api_module
from annotrace.connect.label_studio.api import LabelStudioApi
from annotrace.errors import ConnectError


@pytest.fixture
def api(url, monkeypatch):
    monkeypatch.setattr(api_module, "PAGE_SIZE", 2)
    return LabelStudioApi(url, 7, TOKEN)


@pytest.mark.parametrize("n_more", [0, 1])
def test_all_pages_are_read(fake, api, n_more):
    for number in range(7, 7 + n_more):
        fake.add_task(number, {})
    assert [task["id"] for task in api.tasks(["id"])] == list(fake.tasks)


def test_a_task_that_is_deleted_while_pages_are_read_hides_no_other(fake, api):
    """With numbered pages, task 3 would move to the first page, which was read already."""
    pages = api.tasks(["id"])
    read = [next(pages)["id"], next(pages)["id"]]
    fake.delete_task(1)
    read += [task["id"] for task in pages]
    assert read == [1, 2, 3, 4, 5, 6]


def test_an_unknown_project(url):
    with pytest.raises(ConnectError, match=r"answered 404: there is no such project.*--project"):
        LabelStudioApi(url, 8, TOKEN).read_project()


def test_a_personal_token_is_exchanged_and_renewed(fake, url):
    api = LabelStudioApi(url, 7, "personal.access.token")
    assert api.read_project()["id"] == 7
    fake.tokens.clear()  # The short one has expired.
    assert api.read_project()["id"] == 7
    assert fake.requests.count("POST /api/token/refresh/") == 2
    assert all("personal" not in token for token in fake.tokens)


def test_a_personal_token_that_was_revoked(url):
    with pytest.raises(ConnectError, match="401: the token is not accepted"):
        LabelStudioApi(url, 7, "some.other.token").read_project()


def test_another_server_is_recognised(fake, url):
    fake.failures.append(("GET", 200, {"hello": "world"}))
    with pytest.raises(ConnectError, match="does not answer as Label Studio"):
        LabelStudioApi(url, 7, TOKEN).read_project()


def test_users_who_cannot_be_seen_are_numbers(fake, api):
    fake.failures.append(("/users/", 403, {}))
    assert api.users() == {}
