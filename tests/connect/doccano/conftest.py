import pytest
from fake_doccano import PASSWORD, FakeDoccano
from fake_server import serving

from annotrace.connect import Doccano
from annotrace.connect.doccano import api


@pytest.fixture
def fake():
    """Six examples: 1 to 4 labelled by ann (2) and bo.b (3), 5 by ann alone, 6 by nobody."""
    fake = FakeDoccano(6, ("ann", "bo.b", "cy"))
    for example, names in enumerate(("PP", "NN", "PP", "PN", "N"), start=1):
        for user, letter in enumerate(names, start=2):
            fake.label(example, user, {"P": "Positive", "N": "Negative"}[letter])
    return fake


@pytest.fixture
def url(fake, monkeypatch):
    monkeypatch.setattr(api, "FIRST_WAIT", 0.001)
    with serving(fake) as url:
        yield url


@pytest.fixture
def project(url):
    return Doccano(url, 7, "admin", PASSWORD)
