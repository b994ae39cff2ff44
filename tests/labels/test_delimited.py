import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotrace.labels.delimited import read_delimited

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


@pytest.mark.parametrize("empty", ["", '""'])
def test_rows_are_numbered_as_a_spreadsheet_does(empty):
    content = f'a,b\n1,2\n\n"x\ny",{empty}\n3,4\n'
    table = read_delimited(content.encode(), "x.csv")
    assert table.row_numbers.tolist() == [2, 4, 5]
    assert table.frame["a"].to_list() == ["1", "x\ny", "3"]
