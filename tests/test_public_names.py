"""What `annotrace` offers, and what importing it costs."""

import subprocess
import sys

import pytest

import annotrace

HEAVY = ("torch", "numpy", "polars", "narwhals", "matplotlib", "jinja2", "rich", "sklearn")


@pytest.mark.parametrize("name", annotrace.__all__)
def test_every_public_name_is_there(name):
    assert getattr(annotrace, name) is not None


def test_public_names_are_sorted_and_told_by_dir():
    assert annotrace.__all__ == sorted(annotrace.__all__)
    assert dir(annotrace) == annotrace.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        annotrace.no_such_name  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "banned"),
    [("import annotrace", (*HEAVY, "click")), ("import annotrace.cli.main", HEAVY)],
)
def test_importing_is_cheap(statement, banned):
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & set(banned)


def test_the_core_needs_no_tables_figures_or_commands():
    code = "from annotrace import TraceRegularized; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # narwhals is not among them: scikit-learn itself imports it.
    banned = {"polars", "matplotlib", "jinja2", "click", "rich"}
    assert not set(done.stdout.split()) & banned
