import sqlite3
from contextlib import closing

import pytest
from tables import crowd

from annotrace.cli.label_files import nearly_equal, similar_names

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said", "--truth", "gold")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,a,cat 1,b,Cat 2,a,dog 2,b,dog", "the classes 'Cat', 'cat' differ only in capitals"),
        ("1,a,cat 1,A,dog 2,a,dog 2,A,dog", "the annotators 'A', 'a' differ only in capitals"),
        ("x,a,cat X,b,dog y,a,dog y,b,cat", "the items 'x', 'X' differ only in capitals"),
        ("1,a,1 1,b,1.0 2,a,2 2,b,2", "the classes '1', '1.0' differ only in capitals, spaces, a"),
        ("1,\u00e9,x 1,e\u0301,y 2,\u00e9,y", "the annotators 'e\u0301', '\u00e9' differ only in"),
        ("1,a,0 1,b,-1 2,a,0 2,b,1", "'-1' counts as a class; if it stands for a missing"),
        ("1,a,x 1,b,NA 2,a,x 2,b,y", "'NA' counts as a class; if it stands for a missing"),
        ("1,a,x 1,b,NaN 2,a,x 2,b,y", "'NaN' counts as a class; if it stands for a missing"),
        ("1,a,x 1,b,NULL 2,a,x 2,b,y", "'NULL' counts as a class; if it stands for a missing"),
        ("1,a,x 2,b,y item,worker,label 1,b,x", "the header is repeated among the rows"),
        ("1,a,cat 1,a,cat 1,b,cat 2,b,dog", "labels that repeat an item and annotator: 1."),
    ],
)
def test_unusual_content_is_reported(annotrace, tmp_path, rows, message):
    (tmp_path / "odd.csv").write_text("\n".join(["item,worker,label", *rows.split()]))
    result = annotrace("aggregate", "odd.csv", "--out", "run")
    assert result.exit_code == 0, result.output
    assert f"Note: {message}" in result.stdout


@pytest.mark.parametrize(("n_classes", "reported"), [(200, False), (201, True)])
def test_very_many_classes_are_reported(annotrace, tmp_path, n_classes, reported):
    rows = [f"{k},{who},c{k % n_classes}" for k in range(300) for who in "ab"]
    (tmp_path / "many.csv").write_text("\n".join(["item,worker,label", *rows]))
    result = annotrace("convert", "many.csv", "--out", "labels.csv")
    assert result.exit_code == 0, result.output
    assert (f"Note: {n_classes} classes are many" in result.stdout) is reported


def test_what_a_note_says_to_skip_can_be_skipped(annotrace, tmp_path):
    (tmp_path / "odd.csv").write_text("item,ann,bob\n1,0,-1\n2,0,1\n3,-1,1\n")
    result = annotrace("aggregate", "odd.csv", "--skip", "-1", "--out", "run")
    assert "4 labels, 2 classes ('0', '1')" in result.stdout
    assert "Note" not in result.stdout


def test_the_columns_of_a_wide_table_are_named(annotrace, tmp_path):
    (tmp_path / "wide.csv").write_text("image,ann,bob,notes\na,x,x,\nb,y,y,blurry\n")
    output = annotrace("aggregate", "wide.csv", "--out", "run").stdout
    assert "Columns: item 'image', 2 columns of answers ('ann', 'bob')\n" in output
    assert "Columns set aside, as their values are not labels: 'notes'\n" in output


def test_columns_recognised_by_content_are_reported(annotrace, tmp_path):
    columns, _ = crowd()
    lines = [",".join(row) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["toma,quién,animal", *lines]), encoding="utf-8")
    output = annotrace("convert", "a.csv", "--out", "o.csv").stdout
    assert (
        "Columns: item 'toma', annotator 'quién', label 'animal' (recognised by content)\n"
    ) in output
    (tmp_path / "b.csv").write_text("\n".join(["image,who,animal", *lines]))
    output = annotrace("convert", "b.csv", "--out", "p.csv").stdout
    assert "label 'animal' (annotator and label recognised by content)\n" in output
    assert (tmp_path / "o.csv").read_text() == (tmp_path / "p.csv").read_text()
    options = ("--item", "image", "--annotator", "who", "--label", "animal")
    output = annotrace("convert", "b.csv", *options, "--out", "q.csv").stdout
    assert "by content" not in output


def test_the_annotators_of_a_wide_table_are_named(annotrace, tmp_path):
    rows = [f"i{k},{k % 2},{k % 3 % 2},{k % 2}" for k in range(30)]
    (tmp_path / "wide.csv").write_text("\n".join(['image,ann,"bob, the 2nd",level', *rows]))
    options = ("--annotators", 'ann,"bob, the 2nd"')
    result = annotrace("convert", "wide.csv", *options, "--out", "o.csv")
    assert "2 columns of answers ('ann', 'bob, the 2nd')" in result.stdout
    result = annotrace("convert", "wide.csv", "--annotators", "ann,zed", "--out", "p.csv")
    assert result.exit_code == 2
    assert "wide.csv has no column 'zed'" in result.stderr


def test_a_query_of_a_database(annotrace, tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE labels (photo, judge, label, kind)")
        kinds = {"pat": "person", "eve": "person", "gpt": "llm"}
        rows = [(k, who, k % 2, kind) for k in range(20) for who, kind in kinds.items()]
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE TABLE gold (item, truth)")
    result = annotrace("convert", "a.sqlite", "--out", "o.csv")
    assert result.exit_code == 2
    assert "--query 'SELECT * FROM \"gold\"' on the command line" in result.stderr
    query = ("--query", "SELECT * FROM labels WHERE photo > 3")
    result = annotrace("convert", "a.sqlite", *query, "--out", "o.csv")
    assert result.stdout.startswith("16 items, 3 annotators, 48 labels, 2 classes ('0', '1')\n")
    result = annotrace("judges", "a.sqlite", *query, "--kind", "kind", "--no-report")
    assert result.exit_code == 0, result.output
    assert "with people" in result.stdout
    result = annotrace("convert", "a.sqlite", "--query", "DROP TABLE labels", "--out", "p.csv")
    assert "expected a query that selects rows" in result.stderr


def test_what_was_not_skipped_is_reported(annotrace, crowd):
    (crowd / "odd.csv").write_text("item,worker,label\n1,a,x\n2,a,y\n1,b,unsure\n")
    result = annotrace("aggregate", "odd.csv", "--skip", "Unsure", "--out", "run")
    message = (
        "No label is 'Unsure', so --skip has no effect for it; the most similar label is 'unsure'."
    )
    assert f"Warning: {message}" in result.stderr


def test_learning_from_known_classes_takes_their_column(annotrace, crowd):
    text = (crowd / "labels.csv").read_text()
    (crowd / "labels.csv").write_text(text.replace("gold", "notes", 1))
    result = annotrace("aggregate", "labels.csv", *COLUMNS[:6], "--learn-truth", "--out", "run")
    assert result.exit_code == 2
    assert "--learn-truth needs a column of known classes: --truth COLUMN." in result.stderr


def test_names_are_compared_without_what_readers_do_not_notice():
    assert nearly_equal(["cat", "Cat ", "dog", "1", "1.0"]) == [["cat", "Cat "], ["1", "1.0"]]
    assert nearly_equal(["cat", "dog"]) == []


def test_names_with_other_digits_are_not_similar():
    assert similar_names(["worker 12", "Ann", "bpb"], ["worker 13", "ann", "bob", "bobb"]) == {
        "Ann": "ann"
    }
