import ast
import subprocess
import sys
from pathlib import Path

import pytest

import annotrace

SOURCE = Path(annotrace.__file__).parent
ORDER = (
    "labels",
    "data",
    "simulate",
    "models",
    "networks",
    "training",
    "diagnosis",
    "aggregation",
    "methods",
    "allocation",
    "report",
    "experiments",
    "cli",
)
FREE = ("errors", "parameters", "undo", "version")
DOORS = ("__init__.py", "__main__.py", "nn.py", "plots.py")
HEAVY = ("polars", "narwhals", "matplotlib", "jinja2", "click", "rich", "safetensors")


def imported_rooms(path):
    """The folders and files of annotrace that a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "annotrace" and rest:
                yield rest.split(".")[0]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_a_folder_imports_only_from_those_above_it(path):
    place = path.relative_to(SOURCE).parts
    if place[0] in DOORS:
        return
    rooms = {room for room in imported_rooms(path) if room not in FREE}
    if len(place) == 1:
        assert not rooms, f"{path.name} is free for all, so it may import no folder"
        return
    allowed = ORDER[: ORDER.index(place[0]) + 1]
    assert rooms <= set(allowed), f"{'/'.join(place)} imports what stands below it"


@pytest.mark.parametrize("module", ["annotrace", "annotrace.nn", "annotrace.training"])
def test_what_is_not_always_needed_is_not_always_imported(module):
    code = f"import {module}, sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
