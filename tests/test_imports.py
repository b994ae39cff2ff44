"""How modules depend on each other, read from their source."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import annotrace

SOURCE = Path(annotrace.__file__).parent
PATHS = sorted(SOURCE.rglob("*.py"))
ORDER = (
    "labels",
    "data",
    "simulate",
    "crowd",
    "networks",
    "training",
    "diagnosis",
    "aggregation",
    "methods",
    "judges",
    "allocation",
    "report",
    "experiments",
    "connect",
    "cli",
)
FREE = (
    "atomic",
    "devices",
    "distributed",
    "election",
    "errors",
    "estimators",
    "limits",
    "loopback",
    "parameters",
    "progress",
    "registry",
    "regular_files",
    "run_folder",
    "seeds",
    "storage",
    "threads",
    "undo",
    "version",
)
DOORS = ("__init__.py", "__main__.py", "nn.py", "plots.py")
HEAVY = (
    *("polars", "narwhals", "matplotlib", "jinja2", "click", "rich", "safetensors"),
    *("transformers", "sentence_transformers", "huggingface_hub"),
)
# Hooks of a torch module, a Beta draw from a generator, and the parts of a sparse tensor whose
# rows may repeat: torch has no public way to them.
TORCH = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_sample_dirichlet"}
TORCH |= {"_indices", "_values"}
# Documented methods of named tuples, whose names begin with an underscore so as not to clash.
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
# A documented function of os, and what Python calls at its end, which has no public name.
EXIT = {"_exit", "_run_exitfuncs"}


def parse(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in PATHS}


def imported_names(path, tree=None):
    """The names in annotrace that a module imports, anywhere in it: "annotrace.labels.x"."""
    for node in ast.walk(parse(path) if tree is None else tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("annotrace."))


@pytest.mark.parametrize("path", PATHS, ids=module_name)
def test_a_folder_imports_only_from_those_above_it(path):
    place = path.relative_to(SOURCE).parts
    if place[0] in DOORS:
        return
    folders = {name.split(".")[1] for name in imported_names(path)} - set(FREE)
    if len(place) == 1:
        assert not folders, f"{path.name} is free for all, so it may import no folder"
        return
    allowed = ORDER[: ORDER.index(place[0]) + 1]
    assert folders <= set(allowed), f"{'/'.join(place)} imports from a folder below it"


def imported_modules(path):
    """The modules that a module imports, except for type checking alone.

    A name imported from a package counts for the module that defines it where that is a module, and
    for the package itself otherwise.
    """
    for name in imported_names(path, _without_type_checking(parse(path))):
        package = name.rpartition(".")[0]
        yield name if name in MODULES else package


def _without_type_checking(tree):
    class Remove(ast.NodeTransformer):
        def visit_If(self, node):
            self.generic_visit(node)
            is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            return node.orelse if is_typing else node

    return Remove().visit(tree)


def find_cycle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_module_imports_itself_in_a_circle():
    """Lazy imports in functions count too: they hide a circle, and do not break it."""
    graph = {
        name: set(imported_modules(path)) - {name, "annotrace"}
        for name, path in MODULES.items()
        if name != "annotrace"
    }
    cycle = find_cycle(graph)
    assert cycle is None, f"Import cycle: {' -> '.join(cycle)}"


def test_a_cycle_is_found():
    assert find_cycle({"a": {"b"}, "b": {"c"}, "c": set()}) is None
    assert set(find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == {"b", "c"}


def private_access(tree):
    """Find attributes ``x._name`` where x may be of another module: yields (line, text).

    Allowed are those of `self`, `cls` and ``super()``; names that this file defines itself, as an
    attribute, method, function or class; names of its own private classes; and the documented
    methods of named tuples.
    """
    own = _names_defined_in(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        if node.attr.startswith("__") or node.attr in NAMED_TUPLE | TORCH | EXIT:
            continue
        if _is_self(node.value) or (node.attr in own and not _is_module(node.value, tree)):
            continue
        yield node.lineno, ast.unparse(node)


def private_imports(tree):
    """Find private names that are imported from annotrace: yields (line, text)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("annotrace"):
            for alias in node.names:
                if alias.name.startswith("_") and not alias.name.startswith("__"):
                    yield node.lineno, f"from {node.module} import {alias.name}"


def _is_self(node):
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _is_module(node, tree):
    """Whether a name is that of something imported."""
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for part in ast.walk(tree)
        if isinstance(part, ast.Import | ast.ImportFrom)
        for alias in part.names
    }
    return isinstance(node, ast.Name) and node.id in imported


def _names_defined_in(tree):
    """Private names that the file itself gives to attributes, fields, methods or functions."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if _is_self(node.value):
                names.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Call) and _is_register_buffer(node):
            names.add(node.args[0].value)
    return {name for name in names if name.startswith("_")}


def _is_register_buffer(node):
    is_call = isinstance(node.func, ast.Attribute) and node.func.attr == "register_buffer"
    return is_call and node.args and isinstance(node.args[0], ast.Constant)


@pytest.mark.parametrize("path", PATHS, ids=module_name)
def test_no_module_reads_a_private_name_of_another(path):
    tree = parse(path)
    found = [*private_access(tree), *private_imports(tree)]
    assert not found, "\n".join(f"{path}:{line}: {text}" for line, text in found)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("class A:\n    def f(self):\n        return self._x + super()._y", []),
        ("class A:\n    def f(self, other):\n        self._x = other._x", []),
        ("def f(model):\n    return model._state", ["model._state"]),
        ("import torch\nx = torch._C", ["torch._C"]),
        ("from annotrace.labels import table\ny = table._x\n_x = 1", ["table._x"]),
        ("def f(pair):\n    return pair._replace(a=1)._asdict()", []),
        ("def f(x):\n    return x.__class__", []),
        ("def f(model):\n    model._state = 1", ["model._state"]),
        ("from annotrace.labels.table import _help", ["from annotrace.labels.table import _help"]),
        ("class A:\n    @classmethod\n    def make(cls):\n        return cls._x", []),
    ],
)
def test_private_access_is_found(code, found):
    tree = ast.parse(code)
    texts = [text for _, text in (*private_access(tree), *private_imports(tree))]
    assert texts == found


@pytest.mark.parametrize("module", ["annotrace", "annotrace.nn", "annotrace.training"])
def test_optional_packages_are_not_imported_at_once(module):
    code = f"import {module}, sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("options", [[], ["--method", "dawid-skene", "--max-iter", "1"]])
def test_a_small_table_is_aggregated_without_what_takes_long_to_import(options, tmp_path):
    """scikit-learn alone takes half as long as all of it: it is for what fails, or is trained."""
    labels = tmp_path / "labels.csv"
    rows = (f"{item},{who},{'ab'[item % 2]}" for item in range(20) for who in "xyz")
    labels.write_text("\n".join(["item,annotator,label", *rows]))
    slow = ["sklearn", "pandas", "narwhals", "matplotlib", "PIL"]
    slow += [f"scipy.{part}" for part in ("stats", "optimize", "cluster", "linalg", "spatial")]
    arguments = ["aggregate", str(labels), "--out", str(tmp_path / "run"), *options]
    code = (
        "import sys; from annotrace.cli.main import main; "
        f"main({arguments!r}, standalone_mode=False); "
        f"print(*sorted(set({slow!r}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == []
    assert (tmp_path / "run" / "report.html").exists()
