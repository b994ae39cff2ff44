"""Exports that the tools themselves wrote, cut to a few rows; `tests/tools` has the scripts."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from annotrace.cli.main import main
from annotrace.errors import InputError
from annotrace.labels import LabelTable

REAL = Path(__file__).parents[1] / "samples" / "real"
LABEL_STUDIO, ARGILLA, DOCCANO = REAL / "label_studio", REAL / "argilla", REAL / "doccano"
FRAMES, DATASETS = REAL / "crowd_kit_cleanlab", REAL / "huggingface"

# Tasks 1, 2, 3, 7 and 8 of the project, by hand from its answers: all but the true class of 7.
LABELS = [
    ("1", "3", "Negative"),
    *[("2", "2", "Negative"), ("2", "3", "Positive"), ("2", "4", "Negative")],
    *[("3", "2", "Positive"), ("3", "3", "Positive"), ("3", "4", "Positive")],
    *[("3", "2", "Positive"), ("3", "2", "Negative")],
    *[("7", "2", "Negative"), ("7", "3", "Positive"), ("7", "4", "Neutral, or mixed")],
    ("7", "5", "Positive"),
    *[("8", "3", "Positive"), ("8", "4", "Negative"), ("8", "5", "Positive")],
]


def rows(table):
    return list(
        zip(
            *table.to_frame()[["item", "annotator", "label"]].to_dict(as_series=False).values(),
            strict=True,
        )
    )


def convert(tmp_path, *arguments):
    """Return what `annotrace convert` prints."""
    command = ["convert", *map(str, arguments), "--out", str(tmp_path / "labels.csv")]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    return result.output


def test_argilla_without_status_is_refused():
    """Drafts and discarded responses are in `to_json`, and nothing sets them apart."""
    with pytest.raises(InputError, match=r"to_json\.json, record 1: .*no status.*flatten=True"):
        LabelTable.read(ARGILLA / "to_json.json")


@pytest.mark.parametrize("name", ["ds.parquet", "to_dict_True_index.json"])
def test_argilla_with_status_has_submitted_labels_only(name, tmp_path):
    assert LabelTable.read(ARGILLA / name).n_labels == 160
    assert "6 answers skipped (3 discarded, 3 draft)" in convert(tmp_path, ARGILLA / name)


def test_the_csv_of_argilla_is_refused():
    with pytest.raises(InputError, match=r"ds\.csv, row 2: 'mood\.responses' .*flatten=True"):
        LabelTable.read(ARGILLA / "ds.csv")


@pytest.mark.parametrize("name", ["JSON_all.json", "JSON_MIN_all.json", "rest_tasks.json"])
def test_label_studio_answers_are_in_the_order_in_which_they_were_given(name):
    truth = [("7", "1", "Negative")] if name == "JSON_MIN_all.json" else []
    assert rows(LabelTable.read(LABEL_STUDIO / name)) == sorted(
        [*LABELS, *truth], key=lambda row: int(row[0])
    )


@pytest.mark.parametrize("name", ["JSON_all.json", "JSON_MIN_all.json", "CSV_all.csv"])
@pytest.mark.parametrize(("repeats", "label"), [("first", "Positive"), ("last", "Negative")])
def test_the_first_and_last_answer_of_an_annotator(name, repeats, label):
    table = LabelTable.read(LABEL_STUDIO / name, repeats=repeats)
    assert [row for row in rows(table) if row[:2] == ("3", "2")] == [("3", "2", label)]


@pytest.mark.parametrize("name", ["qa2.csv", "qa_CSV.csv"])
def test_fields_of_tasks_are_not_taken_for_answers(name):
    table = LabelTable.read(LABEL_STUDIO / name)
    assert (table.n_items, table.n_annotators, table.n_labels) == (8, 3, 24)
    assert table.classes.tolist() == ["no", "yes"]


def test_several_choices_in_the_csv_of_label_studio_are_several_labels():
    with pytest.raises(InputError, match=r"there are several questions \('mood', 'stars', 'tax'"):
        LabelTable.read(LABEL_STUDIO / "multi_CSV.csv")
    with pytest.raises(InputError, match=r"row 3: item '69' has several labels .*\('A', 'B'\)"):
        LabelTable.read(LABEL_STUDIO / "multi_CSV.csv", question="topics")
    stars = LabelTable.read(LABEL_STUDIO / "multi_CSV.csv", question="stars")
    assert rows(stars)[:3] == [("69", "2", "2"), ("69", "3", "4"), ("69", "4", "2")]


def test_a_question_that_the_csv_does_not_have():
    with pytest.raises(InputError, match=r"no question 'tone'; it has 'mood', 'ner', 'num'"):
        LabelTable.read(LABEL_STUDIO / "multi_CSV.csv", question="tone")


def test_unanimous_answers_are_not_told_from_fields(tmp_path):
    """The rows of user 2 only: every task has one."""
    header, *lines = (LABEL_STUDIO / "qa2.csv").read_text().splitlines()
    mine = [line for line in lines if line.split(",")[1] == "2"]
    (tmp_path / "mine.csv").write_text("\n".join([header, *mine]))
    with pytest.raises(InputError, match=r"question=.*'answer', 'correct', 'question'"):
        LabelTable.read(tmp_path / "mine.csv")
    table = LabelTable.read(tmp_path / "mine.csv", question="correct")
    assert (table.n_items, table.annotators.tolist()) == (8, ["2"])


def test_tasks_without_an_answer_are_counted(tmp_path):
    printed = convert(tmp_path, LABEL_STUDIO / "CSV_all.csv")
    assert "58 items, 5 annotators, 169 labels, 3 classes" in printed
    assert "Format: Label Studio CSV, question 'sentiment'" in printed
    assert "3 answers skipped (1 empty, 2 unanswered)" in printed


def test_texts_in_the_csv_of_label_studio():
    from annotrace.labels.columns import ColumnNames
    from annotrace.labels.side_tables import LabelColumns

    found = LabelColumns([LABEL_STUDIO / "CSV_all.csv"], ColumnNames()).texts(["text"])
    assert dict(zip(found.items, found.texts, strict=True))["2"] == "Text 1"


def test_a_member_of_doccano_without_answers(tmp_path):
    printed = convert(tmp_path, DOCCANO / "doccano_single_approved")
    assert "49 items, 3 annotators, 85 labels, 3 classes" in printed
    assert "Files without answers: 'admin.jsonl'" in printed
    with pytest.raises(InputError, match=r"admin\.jsonl is empty"):
        LabelTable.read(DOCCANO / "doccano_single_approved" / "admin.jsonl")


def test_the_annotator_of_a_table(tmp_path):
    path = DOCCANO / "doccano_single_CSV" / "ann.csv"
    named = LabelTable.read(path, annotator_name="Ann")
    as_table = LabelTable.read(path, annotator_name="Ann", format="table", skip=[""])
    assert rows(as_table) == rows(named)
    assert named.n_labels == 43
    assert named.annotators.tolist() == ["Ann"]
    printed = convert(tmp_path, path, "--annotator-name", "Ann", "--from", "table", "--skip", "")
    assert "Columns: item 'id', label 'label', all labels by 'Ann'" in printed
    together = LabelTable.read(DOCCANO / "doccano_single_CSV")
    assert (together.n_items, together.n_labels) == (57, 131)
    assert together.annotators.tolist() == ["ann", "bob", "cem"]


def test_texts_beside_the_labels_of_a_named_annotator():
    from annotrace.labels.columns import ColumnNames
    from annotrace.labels.side_tables import LabelColumns

    paths = [DOCCANO / "doccano_single_CSV" / "ann.csv"]
    columns = LabelColumns(paths, ColumnNames(), annotator_name="Ann")
    assert columns.texts(["text"]).texts[0] == 'Text 0, "q"'
    with pytest.raises(InputError, match="has no column of annotators"):
        columns.by_annotator("slug")


def test_an_annotator_is_not_named_beside_a_column_of_annotators(tmp_path):
    (tmp_path / "a.csv").write_text("item,worker,label\na,kim,x\nb,kim,y\n")
    with pytest.raises(InputError, match=r"named by column 'worker'.*--annotator-name"):
        LabelTable.read(tmp_path / "a.csv", annotator_name="Ann")


@pytest.mark.parametrize("name", ["dict_disk", "long_disk"])
def test_what_datasets_saves_beside_the_data_is_not_read(name):
    table = LabelTable.read(DATASETS / name)
    assert (table.n_items, table.n_annotators, table.n_labels) == (59, 4, 170)
    assert table.classes.tolist() == ["neg", "neu", "pos"]


def test_a_doccano_field_named_user():
    table = LabelTable.read(DOCCANO / "doccano_tweets")
    assert table.annotators.tolist() == ["ann", "bob", "cem"]
    assert (table.n_items, table.n_labels) == (12, 36)


@pytest.mark.parametrize(
    "name", ["cl_wide.csv", "wide_num.csv", "wide_num.json", "wide_num.parquet"]
)
def test_wide_frames_of_numbers(name, tmp_path):
    table = LabelTable.read(FRAMES / name)
    assert (table.n_items, table.n_labels) == (60, 195)
    assert table.annotators.tolist() == ["w0", "w1", "w2", "w3", "w4"]
    assert table.classes.tolist() == ["0", "1", "2"]
    says_so = "Labels such as 1.0 are read as 1" in convert(tmp_path, FRAMES / name)
    assert says_so == (name != "wide_num.parquet")


def test_numbers_keep_their_decimals_if_the_caller_writes_them():
    table = LabelTable.read(FRAMES / "cl_wide.csv", classes=["0.0", "1.0", "2.0"])
    assert table.classes.tolist() == ["0.0", "1.0", "2.0"]


@pytest.mark.parametrize("name", ["multi_JSON.json", "multi_JSON_MIN.json", "multi_CSV.csv"])
def test_a_taxonomy_is_read_by_its_path(name):
    table = LabelTable.read(LABEL_STUDIO / name, question="tax")
    assert table.classes.tolist() == ["Animal / Cat", "Animal / Dog"]
    assert rows(table)[:2] == [("69", "2", "Animal / Dog"), ("69", "3", "Animal / Dog")]


def test_who_annotated_is_an_id_or_an_email():
    by_id = LabelTable.read(LABEL_STUDIO / "JSON_all.json")
    by_email = LabelTable.read(LABEL_STUDIO / "snap_full.json")
    assert by_id.annotators.tolist() == ["2", "3", "4", "5"]
    emails = ["ann@example.com", "bob@example.com", "cem@example.com", "dua@example.com"]
    assert by_email.annotators.tolist() == emails
    assert by_id.label.tolist() == by_email.label.tolist()


def test_labels_to_import_into_labelbox_name_nobody():
    with pytest.raises(InputError, match=r"import\.ndjson, line 1: .*created_by"):
        LabelTable.read(REAL / "labelbox" / "import.ndjson")
