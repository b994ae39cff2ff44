"""Run the code of a Markdown page, and compare what it prints with what the page says.

usage: python tests/docs/pages.py PAGE ...    writes what was printed into the pages

The Python of a page runs in order, in one namespace and an empty folder. In blocks of `sh` the
commands `annotrace`, `cat`, `head` and `ls` run in the same folder. A block of `text` that follows
at once is what was printed. Comments right before a block say more, and readers do not see them:

    <!-- not run: REASON -->          nothing runs; `annotrace` and `make` lines must still be legal
    <!-- output within 0.1 -->        numbers may differ so much, and lines may change places
    <!-- output varies: REASON -->    what is printed is not compared
    <!-- files: FOLDER -->            each block after it starts with a copy of these files alone
    <!-- setup: PYTHON -->            lines that run unseen, over as many lines as it takes
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from annotrace.cli.main import main

ROOT = Path(__file__).parents[2]
PARTS = re.compile(
    r"<!--\s*(?P<comment>.*?)-->|^```(?P<language>\S*)\n(?P<body>.*?)^```[ \t]*$", re.S | re.M
)
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e-?\d+)?(?!\w)")
FRAMES = re.compile(r"[─│┆═┌┐└┘╞╡╪┬┴┼├┤]+")
IMAGE = re.compile(r"!\[[^\]]*\]\(((?:\.\./)*images/([\w.-]+))\)")


@dataclass
class Block:
    """Code of a page, with what is to be printed, if the page says so."""

    language: str
    body: str
    line: int
    remarks: list[str]
    said: str | None = None
    said_at: tuple[int, int] | None = None

    def remark(self, kind: str) -> str | None:
        """Give what a comment of one kind says, None if there is none."""
        found = (text.removeprefix(kind) for text in self.remarks if text.startswith(kind))
        said = next(found, None)
        return None if said is None else said.strip(" :\n")


def read_blocks(text: str) -> list[Block]:
    """Find the code of a page, each block with its comments and its output."""
    blocks: list[Block] = []
    remarks: list[str] = []
    end = 0
    for part in PARTS.finditer(text):
        follows = not text[end : part.start()].strip()
        end, line = part.end(), text.count("\n", 0, part.start()) + 2
        if not follows:
            remarks = []
        comment = part["comment"]
        if comment is None and part["language"] == "text":
            if follows and blocks:
                blocks[-1].said, blocks[-1].said_at = part["body"], part.span("body")
        elif comment is None:
            blocks.append(Block(part["language"], part["body"], line, remarks))
            remarks = []
        elif comment.startswith(("setup:", "files:")):
            kind, _, body = comment.partition(":")
            blocks.append(Block(kind, body, line - 1, []))
        else:
            remarks = [*remarks, comment.strip()]
    return blocks


@dataclass
class Page:
    """A page and what its code has made so far."""

    path: Path
    names: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    files: Path | None = None

    def run(self, folder: Path) -> list[tuple[Block, str]]:
        """Run all blocks in a folder; give those that say what is printed, with what was."""
        self.names |= {"__name__": "__main__", "__file__": str(self.path)}
        self.text = self.path.read_text(encoding="utf-8")
        printed = []
        for place, block in enumerate(read_blocks(self.text)):
            skipped = block.remark("not run") is not None
            if block.language == "sh" and skipped:
                check_legal(block.body)
            elif block.language == "files":
                self.files = ROOT / block.body.strip()
            elif not skipped:
                output = self._run_block(block, self._start(folder, place))
                if block.said is not None and output is not None:
                    printed.append((block, output))
        return printed

    def _start(self, folder: Path, place: int) -> Path:
        if self.files is None:
            return folder
        return Path(shutil.copytree(self.files, folder / str(place)))

    def _run_block(self, block: Block, folder: Path) -> str | None:
        with _inside(folder):
            if block.language in ("python", "setup"):
                return self._run_python(block)
            if block.language == "sh":
                shown = block.said is not None
                return "".join(run_command(words, shown) for words in commands(block.body))
        return None

    def _run_python(self, block: Block) -> str:
        # Blank lines before it, so that a traceback has the line of the page.
        source = "\n" * (block.line - 1) + block.body.lstrip("\n")
        code = compile(source, str(self.path), "exec", dont_inherit=True)
        with redirect_stdout(StringIO()) as printed:
            exec(code, self.names)
        return printed.getvalue()


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def commands(body: str) -> list[list[str]]:
    """Split a `sh` block into the words of its commands."""
    lines = body.replace("\\\n", " ").splitlines()
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def run_command(words: list[str], may_fail: bool) -> str:
    """Run one command in this process, and give what a terminal would show of it.

    It may fail where the page shows what is printed, and shows the error.
    """
    name, *arguments = words
    if name == "annotrace":
        result = CliRunner().invoke(main, arguments)
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert may_fail or result.exit_code == 0, f"{shlex.join(words)}: {result.stderr}"
        # Progress goes to standard error; so do errors, which a page may show.
        return result.stdout + (result.stderr if result.exit_code else "")
    if name == "cat":
        return Path(arguments[0]).read_text(encoding="utf-8")
    if name in ("head", "tail"):
        count, path = int(arguments[1]), Path(arguments[2])
        rows = slice(count) if name == "head" else slice(-count, None)
        return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[rows])
    if name == "ls":
        return "\n".join(sorted(path.name for path in Path(arguments[0]).iterdir())) + "\n"
    raise AssertionError(f"{shlex.join(words)!r} does not run here: mark the block `not run`")


def check_legal(body: str) -> None:
    """Check that the commands of a block exist, with the options that they are given."""
    for name, *arguments in commands(body):
        if name == "make":
            assert f"\n{arguments[0]}:" in (ROOT / "Makefile").read_text(), f"make {arguments[0]}"
        if name == "annotrace":
            command = main.commands[arguments[0]]
            command.make_context(arguments[0], arguments[1:])


def differences(block: Block, printed: str) -> list[str]:
    """Tell the lines that a page says and nobody printed, or the other way round."""
    assert block.said is not None
    if block.remark("output varies") is not None:
        return []
    within = block.remark("output within")
    said, got = _lines(block.said), _lines(printed)
    if within is None:
        return [] if said == got else [f"said {block.said}", f"printed {printed}"]
    missing = []
    for line in said:
        like = next((other for other in got if _alike(line, other, float(within))), None)
        if like is None:
            missing.append(f"said {line!r}")
        else:
            got.remove(like)
    return missing + [f"printed {line!r}" for line in got]


def _lines(text: str) -> list[str]:
    """Give lines without frames of tables and without the spaces that fill columns."""
    plain = (" ".join(FRAMES.sub(" ", line).split()) for line in text.splitlines())
    return [line for line in plain if line]


def _alike(one: str, other: str, within: float) -> bool:
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    values = [[float(number.replace(",", "")) for number in pair] for pair in pairs]
    return all(abs(a - b) <= within * max(1.0, abs(a)) for a, b in values)


def rewrite(path: Path) -> None:
    """Put into a page what its code prints, and the images that it draws beside the page."""
    page = Page(path)
    with tempfile.TemporaryDirectory() as folder:
        printed = page.run(Path(folder))
        text = page.text
        for block, output in reversed(printed):
            assert block.said_at is not None
            tidy = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
            start, end = block.said_at
            text = f"{text[:start]}{tidy}\n{text[end:]}"
        path.write_text(text, encoding="utf-8")
        for target, name in IMAGE.findall(text):
            drawn = Path(folder) / name
            if drawn.is_file():
                shutil.copy(drawn, path.parent / target)


if __name__ == "__main__":
    for given in sys.argv[1:]:
        rewrite(Path(given).resolve())
