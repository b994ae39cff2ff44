"""How large and how entangled the package is, by one script for any checkout.

usage: python benchmarks/code_structure.py [SRC ...]     (default: src)

Prints one row per measure and one column per source folder: lines, files, functions, their sizes,
modules that one `fit` and one aggregation import from the package, modules in import cycles
(imports inside functions count), private accesses across modules, and docstrings that begin with
"Give".
"""

from __future__ import annotations

import argparse
import ast
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "annotrace"
NAMED_TUPLE_METHODS = {"_replace", "_asdict", "_fields", "_make"}

FIT = """
import numpy as np, annotrace as at
y = np.arange(60) % 2
crowd = at.simulate.hammer_spammers(3, 2, 0.9, random_state=0)
table = at.simulate.simulate_labels(y, crowd, labels_per_item=2, random_state=0)
X = np.random.default_rng(0).normal(size=(60, 3)) + y[:, None]
{call}
import sys
print(sum(name.split(".")[0] == "annotrace" and hasattr(module, "__file__")
          for name, module in sys.modules.items()))
"""
CALLS = {
    "modules that one fit imports": "at.CrowdClassifier(epochs=2, random_state=0).fit(X, table)",
    "modules that one aggregation imports": "at.aggregation.make().fit(table)",
}


class Module:
    """A source file, parsed."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        parts = path.relative_to(root).with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Return all functions and methods."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    def imports(self, names: set[str]) -> set[str]:
        """Return the modules of the package that this one imports, at any level."""
        skipped = {id(node) for block in _typing_blocks(self.tree) for node in ast.walk(block)}
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found.add(inner if inner in names else node.module)
        return (found & names) - {self.name}

    def private_accesses(self) -> Iterator[str]:
        """Return accesses to private attributes that are not defined in this file."""
        own = {
            name for node in ast.walk(self.tree) for name in _defined(node) if name.startswith("_")
        }
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.startswith("__")
                and node.attr not in own | NAMED_TUPLE_METHODS
                and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
                and not isinstance(node.value, ast.Call)
            ):
                yield f"{self.name}:{node.lineno} {node.attr}"


def _typing_blocks(tree: ast.AST) -> Iterator[ast.If]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield node


def _defined(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


def in_cycles(graph: dict[str, set[str]]) -> set[str]:
    """Return the modules that can reach themselves."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph[name]
        return seen

    return {name for name in graph if name in reachable(name)}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    documented = ast.get_docstring(function) and len(function.body) > 1
    body = function.body[1:] if documented else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1


def imported_modules(src: Path, call: str) -> int:
    code = FIT.format(call=call)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={"PYTHONPATH": str(src), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout.split()[-1])


def measure(src: Path) -> dict[str, float | int | str]:
    modules = [Module(path, src) for path in sorted((src / PACKAGE).rglob("*.py"))]
    names = {module.name for module in modules}
    files = [module.text.count("\n") for module in modules]
    functions = [body_lines(function) for module in modules for function in module.functions()]
    graph = {module.name: module.imports(names) for module in modules}
    nodes = [
        node
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    given = sum(
        (ast.get_docstring(node) or "").startswith(("Give", "Tell", "Say")) for node in nodes
    )
    private = [access for module in modules for access in module.private_accesses()]
    return {
        "source lines": sum(files),
        "files": len(files),
        "functions": len(functions),
        "lines per file, median": statistics.median(files),
        "lines per file, maximum": max(files),
        "lines per function, median": statistics.median(functions),
        "lines per function, maximum": max(functions),
        **{what: imported_modules(src, call) for what, call in CALLS.items()},
        "modules in import cycles": len(in_cycles(graph)),
        "private accesses across modules": len(private),
        "docstrings that begin with Give, Tell or Say": given,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("src", nargs="*", type=Path, default=[Path("src")])
    folders = parser.parse_args().src
    columns = [measure(folder.resolve()) for folder in folders]
    for name in columns[0]:
        print(f"{name:46}" + "".join(f"{column[name]!s:>10}" for column in columns))


if __name__ == "__main__":
    main()
