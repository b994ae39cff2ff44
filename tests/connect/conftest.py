import pytest
from fake_label_studio import TOKEN, FakeLabelStudio
from fake_server import serving

from annotrace.connect import LabelStudio

USERS = ("ann@example.com", "bo@example.com", "cy@example.com")


@pytest.fixture
def fake():
    """Six tasks: 1 to 4 answered by ann (2) and bo (3), 5 by ann alone, 6 by nobody."""
    fake = FakeLabelStudio(6, USERS)
    for task, names in enumerate(("PP", "NN", "PP", "PN", "N"), start=1):
        for user, letter in enumerate(names, start=2):
            fake.answer(task, user, {"P": "Positive", "N": "Negative"}[letter])
    return fake


@pytest.fixture
def url(fake):
    with serving(fake) as url:
        yield url


@pytest.fixture
def project(url):
    return LabelStudio(url, 7, TOKEN)
