"""Files with columns as people name them: read right or refused, never wrong."""

import re
import shlex
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from column_files import N_FILES, make_file, make_files

from annotrace.errors import InputError
from annotrace.labels.building import TableOptions
from annotrace.labels.columns import ColumnNames
from annotrace.labels.reading import ExportOptions, read_parts

ROLES = ("item", "annotator", "label")


def read(path, **names):
    """Return the column of each role, or the error."""
    try:
        _, layout = read_parts(path, ColumnNames(**names), TableOptions(), ExportOptions())
    except InputError as error:
        return str(error)
    assert not layout.wide
    assert layout.truth is None
    return {role: getattr(layout, role) for role in ROLES}


def readings(message):
    """Return the readings that an error shows, as the command line would parse them."""
    shown = re.search(r"Name them: (.*) \(item=", message)
    words = (shlex.split(way) for way in shown[1].split(", or "))
    return [dict(zip((w[2:] for w in way[::2]), way[1::2], strict=True)) for way in words]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    for file in make_files():
        (folder / file.name).write_text(file.text, encoding="utf-8")
    return folder


def outcome(file, folder):
    """Whether a file is read right, also by columns that are one-to-one, or refused."""
    found = read(folder / file.name)
    if isinstance(found, str):
        return "refused"
    is_right = (found[role] in {file.roles[role], *file.equals.get(role, ())} for role in ROLES)
    return "right" if all(is_right) else "wrong"


def test_the_files_are_read_right_or_refused(folder):
    outcomes = Counter(outcome(file, folder) for file in make_files())
    assert outcomes["wrong"] == 0
    assert outcomes["right"] >= 24
    assert outcomes.total() == N_FILES


def test_refusals_show_the_reading_that_is_right(folder):
    for file in make_files():
        message = read(folder / file.name)
        if isinstance(message, str):
            assert any(
                all(way[role] in {file.roles[role], *file.equals.get(role, ())} for role in ROLES)
                for way in readings(message)
            ), message


def test_every_file_can_be_read_with_options(folder):
    for file in make_files():
        assert read(folder / file.name, **file.roles) == file.roles


def test_the_files_are_the_same_every_time():
    assert make_file(7) == make_file(7)
    assert len({file.text for file in make_files()}) == N_FILES


def test_the_files_differ_as_much_as_they_should():
    names = {tuple(file.roles.values()) for file in make_files()}
    assert len(names) == 12
    assert len({file.text.count("\n") for file in make_files()}) >= 12


CROWD = Path(__file__).parents[2] / ".." / "shared" / "data" / "crowd"
CROWDS = sorted((*CROWD.glob("label_only/*.csv.gz"), *CROWD.glob("judges/*.csv.gz")))


@pytest.mark.skipif(not CROWDS, reason="the real files are not here")
def test_real_crowds_without_names_of_columns(tmp_path):
    """The label, the truth and further columns are named c1, c2, ... and stand in any order."""
    outcomes = Counter()
    for path in CROWDS:
        frame = pl.read_csv(path, infer_schema=False)
        if set(ROLES) <= set(frame.columns):
            names = {name: f"c{k}" for k, name in enumerate(sorted(frame.columns))}
            file = tmp_path / path.name.removesuffix(".gz")
            frame.select(sorted(frame.columns)).rename(names).write_csv(file)
            found = read(file)
            is_right = found == {role: names[role] for role in ROLES}
            outcomes["refused" if isinstance(found, str) else "right" if is_right else "wrong"] += 1
    assert outcomes["wrong"] == 0
    assert outcomes["right"] >= 12
