import ast

import pytest
from mutants import find_mutants, mutate

LEFT_OUT = '''
"""A docstring with 1 < 2."""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    x = 1


def f(a: "Literal[1]", b: "Literal[2]") -> "Literal[3]":
    """Return 4 + 5."""
    assert a < 6
    if a.is_cuda:
        a = a + 7
    if a.is_cuda and len(a) < 8:
        a = a + 9
    name = f"{a + 10}"
    for one, two in zip(a, strict=True):
        name = "eleven"
'''


def changes(folder, source):
    path = folder / "module.py"
    path.write_text(source)
    return {(mutant.old, mutant.new) for mutant in find_mutants(path)}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b <= c", {("a < b <= c", "a <= b <= c"), ("a < b <= c", "a < b < c")}),
        ("a + b", {("a + b", "a - b")}),
        ("a += b", {("a += b", "a -= b")}),
        ("a and b", {("a and b", "a or b")}),
        ("not a", {("not a", "a")}),
        ("a = True", {("True", "False")}),
        ("a = 2.5", {("2.5", "3.5")}),
        ("a[b:]", {("b:", ":")}),
        ("a = f(b, c)", {("f(b, c)", "f(c, b)")}),
        ("a = f(*b, c)", set()),
        ("a = b.maximum(c, d)", {("b.maximum(c, d)", "b.minimum(c, d)")}),
        ("a = f(b=c, d=e)", {("f(b=c, d=e)", "f(d=e)"), ("f(b=c, d=e)", "f(b=c)")}),
        ("a = b.min()", {("b.min()", "b.max()")}),
        ("a = max(b)", {("max(b)", "min(b)")}),
        ("f()", {("f()", "pass")}),
        ("raise Error(a + 1)", {("raise Error(a + 1)", "pass")}),
        ("a = b if c else d", {("c", "not c")}),
        ("def f():\n    return a", {("return a", "return None")}),
        (LEFT_OUT, set()),
    ],
)
def test_changes(tmp_path, source, expected):
    assert changes(tmp_path, source) == expected


def test_each_mutant_is_another_program(tmp_path):
    source = "def f(a, b=1):\n    if a < b:\n        a = a + b\n    return a * 2\n"
    path = tmp_path / "module.py"
    path.write_text(source)
    mutants = find_mutants(path)
    programs = {ast.unparse(mutate(source, mutant.number)) for mutant in mutants}
    assert len(programs) == len(mutants) == 6
    assert ast.unparse(ast.parse(source)) not in programs
    assert {(mutant.line, mutant.end_line, mutant.in_function) for mutant in mutants} == {
        (1, 1, False),
        (2, 2, True),
        (3, 3, True),
        (4, 4, True),
    }
