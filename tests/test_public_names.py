"""The public names of `annotrace`, and what importing it costs."""

import subprocess
import sys

import pytest

import annotrace

HEAVY = ("torch", "numpy", "polars", "narwhals", "matplotlib", "jinja2", "rich", "sklearn")


@pytest.mark.parametrize("name", annotrace.__all__)
def test_every_public_name_is_there(name):
    assert getattr(annotrace, name) is not None


def test_public_names_are_sorted_and_listed_by_dir():
    assert annotrace.__all__ == sorted(annotrace.__all__)
    assert dir(annotrace) == annotrace.__all__
    assert {"labels", "errors", "crowd", "Recipe", "load"} <= set(dir(annotrace))


def test_every_method_is_a_public_name():
    classes = {method.factory.__name__ for method in annotrace.list_methods()}
    assert classes <= set(annotrace.__all__)


def test_modules_are_the_modules():
    assert annotrace.labels.LabelTable is annotrace.LabelTable
    assert issubclass(annotrace.errors.InputError, ValueError)
    assert annotrace.methods.load is annotrace.load
    assert annotrace.methods.Recipe is annotrace.Recipe
    assert annotrace.nn.Confusion is annotrace.crowd.Confusion


def test_the_default_aggregation_needs_no_name():
    table = annotrace.LabelTable.from_codes([0, 0, 0, 1, 1, 1], [0, 1, 2] * 2, [0, 0, 1, 1, 1, 1])
    model = annotrace.aggregation.make().fit(table)
    assert model.predict().tolist() == [0, 1]


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


def test_the_core_imports_no_frames_figures_or_commands():
    code = "from annotrace import TraceRegularized; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # narwhals is not among them: scikit-learn itself imports it.
    banned = {"polars", "matplotlib", "jinja2", "click", "rich"}
    assert not set(done.stdout.split()) & banned
