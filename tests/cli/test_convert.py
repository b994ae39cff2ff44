import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from annotrace.cli.label_files import FORMATS
from annotrace.labels import LabelTable, formats

SAMPLES = Path(__file__).parents[1] / "labels" / "samples"


def test_an_export_becomes_a_table(annotrace, tmp_path):
    result = annotrace(
        "convert", SAMPLES / "label_studio.json", "--question", "sentiment", "--out", "labels.csv"
    )
    assert result.exit_code == 0, result.output
    assert "2 items, 2 annotators, 3 labels, 2 classes ('Negative', 'Positive')" in result.stdout
    assert "Format: Label Studio JSON, question 'sentiment'" in result.stdout
    assert "3 answers skipped (1 cancelled, 1 empty, 1 draft)" in result.stdout
    frame = pl.read_csv(tmp_path / "labels.csv")
    assert frame.columns == ["item", "annotator", "label", "truth"]
    assert len(frame) == 3


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_labels_come_from_standard_input(tmp_path, name):
    args = [sys.executable, "-m", "annotrace", "convert", name, "--out", tmp_path / "labels.csv"]
    given = b"item,annotator,label\na,kim,x\nb,kim,y\n"
    result = subprocess.run(args, input=given, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "labels.csv").read_bytes() == given


def test_standard_input_is_read_once(annotrace):
    result = annotrace("convert", "-", "-", "--out", "labels.csv")
    assert result.exit_code == 2
    assert "Standard input (-) can be read only once" in result.stderr


def test_several_files_are_named_after_their_annotators(annotrace, tmp_path):
    files = [SAMPLES / "doccano" / "ann.jsonl", SAMPLES / "doccano" / "bob.jsonl"]
    result = annotrace("convert", *files, "--out", "labels.jsonl", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert set(pl.read_ndjson(tmp_path / "labels.jsonl")["annotator"]) == {"ann", "bob"}


def test_tables_are_converted_too(annotrace, tmp_path):
    result = annotrace("convert", SAMPLES / "cleanlab.csv", "--out", "labels.csv")
    assert "Columns: item '', 2 columns of answers" in result.stdout
    assert (
        (tmp_path / "labels.csv").read_text().startswith("item,annotator,label\n0,annotator_1,cat")
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["label_studio.json"], "Choose one with question= (--question on the command line)"),
        (["doccano/ann.jsonl"], "Name the annotator with annotator_name= (--annotator-name)"),
        (["peerannot.json", "--from", "prodigy"], "'_input_hash' cannot name the item"),
        (["peerannot.json", "--label", "x"], "which has no column for label= (--label)"),
    ],
)
def test_what_is_missing_is_asked_for_in_one_line(annotrace, tmp_path, args, message):
    result = annotrace("convert", SAMPLES / args[0], *args[1:], "--out", "labels.csv")
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "labels.csv").exists()


def test_nothing_is_written_over_unasked(annotrace, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    result = annotrace("convert", SAMPLES / "peerannot.json", "--out", "labels.csv")
    assert "labels.csv already exists" in result.stderr
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_other_commands_take_exports_too(annotrace, tmp_path):
    result = annotrace("aggregate", SAMPLES / "doccano", "--method", "majority", "--out", "run")
    assert result.exit_code == 0, result.output
    assert "Format: doccano export\n1 answer skipped (1 empty)" in result.stdout
    assert len(pl.read_csv(tmp_path / "run" / "truth.csv")) == 3


def test_every_format_can_be_named():
    assert list(FORMATS) == ["table", *(known.name for known in formats.FORMATS)]


NAMES = ["=1+1", "-", "@b", "'+c", "-1"]


def test_formulas_are_converted_and_read_back_exactly(annotrace, tmp_path):
    columns = {"item": NAMES, "annotator": NAMES[::-1], "label": NAMES, "truth": NAMES}
    table = LabelTable.from_long(columns)
    table.write(tmp_path / "labels.jsonl")
    # Guards are neither lost nor doubled from file to file.
    for given, out in pairwise(["labels.jsonl", "a.csv", "b.tsv", "c.csv.gz", "d.parquet"]):
        assert annotrace("convert", given, "--out", out).exit_code == 0
        assert LabelTable.read(tmp_path / out) == table
    assert "'=1+1,-1,'=1+1" in (tmp_path / "a.csv").read_text()


def test_text_is_written_as_it_is_if_asked_for(annotrace, tmp_path):
    (tmp_path / "labels.csv").write_text("item,annotator,label\n'=1,ann,'-\nb,ann,+\n")
    assert annotrace("convert", "labels.csv", "--raw", "--out", "raw.csv").exit_code == 0
    assert (tmp_path / "raw.csv").read_text() == "item,annotator,label\n=1,ann,-\nb,ann,+\n"
