"""The token or password of a labelling tool: from the environment, or asked for unseen."""

import click
import pytest

from annotrace.cli.connect_loop import read_secret

URL, NAMES = "http://localhost:8080", ("ANNOTRACE_FIRST_SECRET", "ANNOTRACE_SECOND_SECRET")


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def test_the_first_variable_that_is_set_is_used(monkeypatch):
    monkeypatch.setenv(NAMES[1], "second")
    assert read_secret("token", "Tool", NAMES, URL) == "second"
    monkeypatch.setenv(NAMES[0], "first")
    assert read_secret("token", "Tool", NAMES, URL) == "first"


def test_nobody_to_ask(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(
        click.UsageError, match=f"no token: set the environment variable {NAMES[0]}"
    ):
        read_secret("token", "Tool", NAMES, URL)


def test_what_is_typed_is_not_shown(monkeypatch, capsys):
    asked = {}

    def prompt(text, **options):
        asked.update(options, text=text)
        return "typed"

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "prompt", prompt)
    assert read_secret("password", "ann in Tool", NAMES, URL) == "typed"
    assert asked == {"text": "Password of ann in Tool", "hide_input": True, "err": True}
    assert "typed" not in "".join(capsys.readouterr())
