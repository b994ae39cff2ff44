"""The mutants of a file: its source with one expression or statement changed.

The changes: comparisons, arithmetic and boolean operators, numbers, True and False, bounds of
slices, conditions, functions with an opposite (`min` and `max`), the order of two arguments,
keyword arguments (left out), return values (None), statements that only call or raise (left out).
Types, docstrings, messages, other strings, assertions and branches for GPUs are not changed, nor
is the order of arguments that does not matter (`maximum`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
OPPOSITES = {
    "min": "max",
    "any": "all",
    "argmin": "argmax",
    "minimum": "maximum",
    "amin": "amax",
    "floor": "ceil",
    "zeros": "ones",
    "zeros_like": "ones_like",
}
OPPOSITES |= {second: first for first, second in OPPOSITES.items()}
SWAPS = COMPARISONS | ARITHMETIC | {ast.And: ast.Or, ast.Or: ast.And}
COMMUTATIVE = ("min", "max", "minimum", "maximum", "dot", "transpose", "addcmul_", "array_equal")
NOT_RUN = ("annotation", "returns", "type_params")
# Assertions in all but name: their removal changes nothing in correct code.
ASSERTIONS = ("strict", None)


@dataclass(frozen=True)
class Mutant:
    """One change of one file: the `number`-th, of the lines from `line` to `end_line`."""

    file: str
    number: int
    line: int
    end_line: int
    in_function: bool
    old: str
    new: str


@dataclass
class Place:
    """Where a change is: the lines of its statement, and whether they are in a function."""

    line: int
    end_line: int
    in_function: bool


@dataclass
class Change:
    """A change that can be made to a tree: `new` replaces `old` in a field of its parent."""

    parent: ast.AST
    field: str
    index: int | None
    old: ast.AST
    new: ast.AST
    place: Place

    def make(self) -> None:
        """Change the tree."""
        if self.index is None:
            setattr(self.parent, self.field, self.new)
        else:
            getattr(self.parent, self.field)[self.index] = self.new
        ast.fix_missing_locations(ast.copy_location(self.new, self.old))


def find_mutants(path: Path) -> list[Mutant]:
    """Return every mutant of a file."""
    return [
        Mutant(
            str(path),
            number,
            change.place.line,
            change.place.end_line,
            change.place.in_function,
            ast.unparse(change.old),
            ast.unparse(change.new),
        )
        for number, change in enumerate(find_changes(ast.parse(path.read_text())))
    ]


def mutate(source: str, number: int) -> ast.Module:
    """Return the tree of the source with one change."""
    tree = ast.parse(source)
    list(find_changes(tree))[number].make()
    return tree


def find_changes(node: ast.AST, place: Place | None = None) -> Iterator[Change]:
    """Yield every change below a node, in the order of the source."""
    place = place or Place(1, 1, in_function=False)
    for field, index, child in children(node):
        inside = place_of(node, field, child, place)
        for new in replacements(node, field, child):
            yield Change(node, field, index, child, new, inside)
        if not isinstance(child, ast.Raise):
            yield from find_changes(child, inside)


def children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    """Yield the children of a node that are code, with their place in it."""
    for field, value in ast.iter_fields(node):
        listed = isinstance(value, list)
        for index, child in enumerate(value if listed else [value]):
            if isinstance(child, ast.AST) and field not in NOT_RUN and not is_left_out(child):
                yield field, index if listed else None, child


def is_left_out(node: ast.AST) -> bool:
    """Whether a node is text, an assertion, for type checkers only or for GPUs only."""
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Constant(value=str()) | ast.Expr(value=ast.Constant()):
            return True
        case ast.keyword(arg="strict"):
            return True
        case ast.If(test=ast.BoolOp(ast.And(), [ast.Attribute(attr="is_cuda"), *_])):
            return True
        case ast.If(test=ast.Attribute(attr="is_cuda")):
            return True
    return False


def place_of(parent: ast.AST, field: str, node: ast.AST, place: Place) -> Place:
    """Return the lines of the simple statement, or of the head of the compound one."""
    is_function = isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and field == "body"
    in_function = place.in_function or is_function
    if not isinstance(node, ast.stmt):
        return place
    body = getattr(node, "body", None)
    end = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
    return Place(node.lineno, end or node.lineno, in_function)


def replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    """Yield what can stand in the place of a node."""
    match node:
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
        case ast.Compare():
            for place, operator in enumerate(node.ops):
                yield changed(node, lambda copy, k=place, op=operator: put(copy.ops, k, swap(op)))
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if type(node.op) in SWAPS:
            yield changed(node, lambda copy: setattr(copy, "op", swap(copy.op)))
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Return(value=ast.expr()) if not is_constant(node.value):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case ast.Call():
            yield from change_call(node)
        case ast.Slice():
            for bound in ("lower", "upper"):
                if getattr(node, bound) is not None:
                    yield changed(node, lambda copy, name=bound: setattr(copy, name, None))
    is_condition = field == "test" and isinstance(parent, (ast.If, ast.IfExp, ast.While))
    if is_condition and isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        yield ast.UnaryOp(ast.Not(), node)


def change_call(node: ast.Call) -> Iterator[ast.AST]:
    """Yield a call with swapped arguments, without each keyword, and of the opposite function."""
    part = {ast.Name: "id", ast.Attribute: "attr"}.get(type(node.func), "")
    name = getattr(node.func, part, None)
    starred = any(isinstance(given, ast.Starred) for given in node.args[:2])
    if len(node.args) > 1 and not starred and name not in COMMUTATIVE:
        yield changed(node, lambda copy: copy.args.insert(0, copy.args.pop(1)))
    for place, keyword in enumerate(node.keywords):
        if keyword.arg not in ASSERTIONS:
            yield changed(node, lambda copy, k=place: copy.keywords.pop(k))
    if name in OPPOSITES:
        yield changed(node, lambda copy: setattr(copy.func, part, OPPOSITES[name]))


def changed(node: ast.AST, change: Callable[[Any], object]) -> ast.AST:
    """Return a copy of a node after a change."""
    copy = deepcopy(node)
    change(copy)
    return copy


def swap(operator: ast.AST) -> ast.AST:
    """Return the operator that takes the place of another."""
    return SWAPS[type(operator)]()


def put(values: list[Any], place: int, value: Any) -> None:
    """Replace an element of a list."""
    values[place] = value


def is_constant(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant)
