import csv
import gzip
import io
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbooks import MAIN, workbook

from annotrace.errors import InputError, LimitError
from annotrace.labels import LabelTable
from annotrace.labels.delimited import read_delimited
from annotrace.limits import Limits

cells = st.text(st.sampled_from('ab1 ,;\t"\n.NA'), max_size=4)
tables = st.integers(2, 4).flatmap(
    lambda width: st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=6)
)


@given(tables, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_cells_are_those_that_were_written(rows, separator, line_end, quote_all):
    header = [f"column {k}" for k in range(len(rows[0]))]
    buffer = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    writer = csv.writer(buffer, delimiter=separator, lineterminator=line_end, quoting=quoting)
    writer.writerows([header, *rows])
    table = read_delimited(buffer.getvalue().encode(), "x.csv")
    assert table.frame.columns == header
    assert [[cell or "" for cell in row] for row in table.frame.rows()] == rows
    assert table.row_numbers.tolist() == list(range(2, len(rows) + 2))


@pytest.mark.parametrize("last", ["x", "", "'-1"])
def test_quotes_before_formulas_are_removed_from_cells_and_header(last):
    table = read_delimited(f"'=A,b\n'-1,''+x\n'quoted',{last}\n".encode(), "x.csv")
    assert table.frame.columns == ["=A", "b"]
    assert table.frame["=A"].to_list() == ["-1", "'quoted'"]
    assert table.frame["b"].fill_null("").to_list() == ["'+x", last.removeprefix("'")]


def test_columns_that_differ_only_in_the_quote_are_the_same():
    with pytest.raises(InputError, match="columns 1 and 2 are both named '=A'"):
        read_delimited(b"'=A,=A\nx,y\n", "x.csv")


@pytest.mark.parametrize("empty", ["", '""'])
def test_rows_are_numbered_as_a_spreadsheet_does(empty):
    content = f'a,b\n1,2\n\n"x\ny",{empty}\n3,4\n'
    table = read_delimited(content.encode(), "x.csv")
    assert table.row_numbers.tolist() == [2, 4, 5]
    assert table.frame["a"].to_list() == ["1", "x\ny", "3"]


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def test_quoted_cells_with_separators_and_line_breaks(read):
    table = read('item,worker,label\n"a, b",kim,x\n"c\nd",kim,"say ""y"""\n')
    assert rows(table) == [("a, b", "kim", "x"), ("c\nd", "kim", 'say "y"')]


def test_a_comma_in_a_quoted_header_is_no_separator(read):
    table = read('"left, right";item;kim\nx;a;y\ny;b;x\n')
    assert table.annotators.tolist() == ["left, right", "kim"]


def test_wide_csv(read):
    table = read("image,kim,lee,truth\na,x,,x\nb,,,y\nc,y,x,\n")
    assert rows(table) == [("a", "kim", "x"), ("c", "kim", "y"), ("c", "lee", "x")]
    assert table.truth.tolist() == [0, 1, -1]
    assert table.labels_per_item().tolist() == [1, 0, 2]


def test_wide_csv_with_the_index_of_pandas(read):
    assert rows(read(",kim\na,x\nb,y\n")) == [("a", "kim", "x"), ("b", "kim", "y")]


HEADER = ["item", "worker", "label"]


@pytest.fixture
def read_xlsx(tmp_path):
    pytest.importorskip("python_calamine")

    def read(content, **options):
        (tmp_path / "labels.xlsx").write_bytes(content)
        return LabelTable.read(tmp_path / "labels.xlsx", **options)

    return read


def test_the_first_sheet_is_read_as_text(read_xlsx):
    written = [HEADER, ["007", 3.0, "NA"], [2.5, 12345678, True], [(45292,), "é & <b>", "NA"]]
    table = read_xlsx(workbook(written, [["other"], ["sheet"]]))
    assert rows(table) == [
        ("007", "3", "NA"),
        ("2.5", "12345678", "TRUE"),
        ("2024-01-01", "é & <b>", "NA"),
    ]
    assert table.source.endswith("labels.xlsx")


def test_quotes_before_formulas_are_removed_from_workbooks_too(read_xlsx):
    table = read_xlsx(workbook([HEADER, ["'=1", "kim", "'-"], ["b", "kim", "+"]]))
    assert table.items.tolist() == ["=1", "b"]
    assert table.classes.tolist() == ["+", "-"]


def test_dates_with_a_time_are_iso(read_xlsx):
    table = read_xlsx(workbook([HEADER, [(45292.75,), "kim", "x"], ["b", "kim", "y"]]))
    assert table.items.tolist() == ["2024-01-01T18:00:00", "b"]


def test_empty_rows_columns_and_cells(read_xlsx):
    body = [["a", "kim", "x"], [], ["b", "kim", None], ["c", "lee", "y"]]
    written = [[], [*HEADER, None, ""], *body]
    assert rows(read_xlsx(workbook(written), skip=[""])) == [("a", "kim", "x"), ("c", "lee", "y")]
    with pytest.raises(InputError, match=r"labels\.xlsx, row 5, column 'label' is empty"):
        read_xlsx(workbook(written))


def test_wide_and_gzipped(read_xlsx):
    content = workbook([["image", "kim", "lee"], ["a", "x", "y"], ["b", None, "x"]])
    for table in (read_xlsx(content), read_xlsx(gzip.compress(content))):
        assert rows(table) == [("a", "kim", "x"), ("a", "lee", "y"), ("b", "lee", "x")]


def test_workbooks_and_csv_files_of_a_folder_are_one_table(read_xlsx, tmp_path):
    (tmp_path / "b.csv").write_text("item,worker,label\nb,kim,y\n")
    (tmp_path / "labels.xlsx").write_bytes(workbook([HEADER, ["a", "kim", "x"]]))
    assert rows(LabelTable.read(tmp_path)) == [("a", "kim", "x"), ("b", "kim", "y")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (workbook([]), "the first sheet is empty"),
        (workbook([HEADER]), "has a header and no rows below it"),
        (workbook([["item", "item"], ["a", "b"]]), "columns 1 and 2 are both named 'item'"),
        (workbook([HEADER])[:900], "is a damaged zip file"),
    ],
)
def test_bad_workbooks_get_one_line(read_xlsx, content, message):
    with pytest.raises(InputError, match=r"labels\.xlsx") as caught:
        read_xlsx(content)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_archive_that_only_looks_like_a_workbook(read_xlsx):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    with pytest.raises(InputError, match=r"labels\.xlsx is a damaged xlsx file"):
        read_xlsx(buffer.getvalue())


def test_a_missing_library_is_named(read_xlsx, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(InputError, match=r"labels\.xlsx .* pip install 'annotrace\[xlsx\]'"):
        read_xlsx(workbook([HEADER, ["a", "kim", "x"]]))


@pytest.mark.parametrize(("place", "n_columns"), [("D2", 4), ("AB2", 28)])
def test_the_columns_of_a_workbook_are_counted_by_the_names_of_cells(tmp_path, place, n_columns):
    cells = f'<row r="2"><c r="A2"><v>1</v></c><c r="{place}"><v>1</v></c></row>'
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'
    (tmp_path / "a.xlsx").write_bytes(workbook(sheet))
    with pytest.raises(LimitError, match=f": {n_columns} columns exceed the limit of 3"):
        LabelTable.read(tmp_path / "a.xlsx", limits=Limits(max_columns=3))


def test_the_columns_of_text_are_counted_in_the_header():
    content = b'item;kim;"lee; or lea";max\na;x;y;x\n'
    assert read_delimited(content, "x.csv", Limits(max_columns=4)).frame.width == 4
    with pytest.raises(LimitError, match=r"x\.csv: 4 columns exceed the limit of 3"):
        read_delimited(content, "x.csv", Limits(max_columns=3))


def test_blank_columns_at_the_end_are_no_annotators(read_xlsx):
    written = [["image", "kim", "lee", ""], ["a", "x", "y", ""], ["b", "y", "x", ""]]
    assert read_xlsx(workbook(written)).annotators.tolist() == ["kim", "lee"]
