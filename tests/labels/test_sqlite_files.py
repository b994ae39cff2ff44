import gzip
import io
import sqlite3
from contextlib import closing

import pytest

from annotrace.errors import InputError, LimitError
from annotrace.labels import LabelTable
from annotrace.labels.files import Piped
from annotrace.labels.side_tables import read_gold
from annotrace.limits import Limits

ROWS = [("007", 1, "x"), ("b", 2, "y"), ("007", 2, "1e5")]
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"


def run(path, *statements):
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def database(tmp_path):
    """A file with one table of labels, in a folder of its own."""
    path = tmp_path / "labels.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE labels (task TEXT, worker INTEGER, answer)")
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?)", ROWS)
    return path


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


EXPECTED = [("007", "1", "x"), ("007", "2", "1e5"), ("b", "2", "y")]


def test_the_only_table_is_read_as_text_whatever_the_name(database):
    assert rows(LabelTable.read(database)) == EXPECTED
    other = database.rename(database.with_name("labels.csv"))
    assert rows(LabelTable.read(other)) == EXPECTED
    assert list(database.parent.iterdir()) == [other]


def test_a_query_selects_and_names_columns(database):
    query = "SELECT task AS photo, worker AS who, answer AS says FROM labels WHERE worker = 2"
    table = LabelTable.read(database, query=query, item="photo", annotator="who", label="says")
    assert rows(table) == EXPECTED[1:]


def test_values_are_as_stored(database):
    values = ["7", "7.0", "'007'", "9007199254740993", "x'616263'", "x'ff'"]
    selected = " UNION ALL ".join(f"SELECT 1 AS item, 2 AS worker, {v} AS label" for v in values)
    table = LabelTable.read(database, query=selected)
    assert set(table.classes.tolist()) == {"7", "7.0", "007", "9007199254740993", "abc", "ff"}
    with pytest.raises(InputError, match=r"row 1 of the query, column 'label' is empty"):
        LabelTable.read(database, query="SELECT 1 AS item, 2 AS worker, NULL AS label")


def test_several_tables_need_a_query(database):
    run(database, "CREATE VIEW v AS SELECT * FROM labels", 'CREATE TABLE "my gold" (item, truth)')
    with pytest.raises(InputError) as caught:
        LabelTable.read(database)
    assert "labels.sqlite has several tables ('labels', 'my gold', 'v')" in str(caught.value)
    assert "--query 'SELECT * FROM \"labels\"' on the command line" in str(caught.value)
    query = 'SELECT * FROM "my gold"'
    with pytest.raises(InputError, match="has no rows"):
        LabelTable.read(database, query=query)
    assert rows(LabelTable.read(database, query="SELECT * FROM v")) == EXPECTED


@pytest.mark.parametrize("name", ["order", 'my "gold"', "größe"])
def test_tables_of_any_name(tmp_path, name):
    quoted = name.replace('"', '""')
    run(tmp_path / "a.db", f'CREATE TABLE "{quoted}" AS SELECT 1 AS item, 2 AS truth')
    assert read_gold(tmp_path / "a.db") == {"1": "2"}
    run(tmp_path / "a.db", "CREATE TABLE zoo (item)")
    with pytest.raises(InputError) as caught:
        read_gold(tmp_path / "a.db")
    assert f"--query 'SELECT * FROM \"{quoted}\"' on the command line" in str(caught.value)


def test_gold_in_a_database(tmp_path):
    path = tmp_path / "gold.db"
    run(path, "CREATE TABLE gold (item, truth)", "INSERT INTO gold VALUES ('a', 'x'), ('b', NULL)")
    assert read_gold(path) == {"a": "x"}


def test_gzip_and_pipes(database):
    content = database.read_bytes()
    packed = database.with_name("packed")
    packed.write_bytes(gzip.compress(content, mtime=0))
    assert rows(LabelTable.read(packed)) == EXPECTED
    piped = Piped("standard input")
    piped.content = content
    assert rows(LabelTable.read(piped)) == EXPECTED


@pytest.mark.parametrize("is_open", [True, False])
def test_a_database_with_a_log_of_changes(database, is_open):
    with closing(sqlite3.connect(database)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("INSERT INTO labels VALUES ('c', 3, 'x')")
        writer.commit()
        if is_open:
            assert rows(LabelTable.read(database))[-1] == ("c", "3", "x")
    assert rows(LabelTable.read(database))[-1] == ("c", "3", "x")
    assert list(database.parent.iterdir()) == [database]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DELETE FROM labels", "expected a query that selects rows (SELECT ...), but got 'DELETE"),
        ("PRAGMA user_version", "expected a query that selects rows"),
        ("ATTACH 'other' AS o", "expected a query that selects rows"),
        ("WITH a AS (SELECT 1) INSERT INTO labels SELECT 1, 2, 3", "expected a query that selects"),
        ("WITH a AS (SELECT 1) DELETE FROM labels", "expected a query that selects rows"),
        ("SELECT 1; SELECT 2", "only execute one statement"),
        ("SELECT load_extension('evil')", "not authorized"),
        ("SELECT * FROM pragma_database_list", "not authorized"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
        ("SELECT zeroblob(900000000)", "too big"),
        ("SELECT 1 AS item, 2 AS item", "columns 1 and 2 are both named 'item'"),
        ("SELECT * FROM labels WHERE worker = 9", "has no rows that the query selects"),
        (
            "SELECT CAST(x'61ff' AS TEXT) AS item",
            "row 1 of the query, column 'item': 'a\\udcff' is",
        ),
    ],
)
def test_queries_that_are_refused(database, query, message):
    before = database.read_bytes()
    with pytest.raises(InputError) as caught:
        LabelTable.read(database, query=query)
    assert message in str(caught.value)
    assert "labels.sqlite" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert database.read_bytes() == before
    assert list(database.parent.iterdir()) == [database]


def test_an_endless_query_is_stopped(database):
    with pytest.raises(LimitError, match=r"limit of 1\. .*--max-seconds on the command line"):
        LabelTable.read(
            database, query=f"{ENDLESS} SELECT count(*) FROM r", limits=Limits(max_seconds=1)
        )


def test_an_endless_view_does_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("annotrace.limits.FREE_SIZE", 2**20)
    run(tmp_path / "a.db", f"CREATE VIEW v AS {ENDLESS} SELECT n AS item, 1 AS who FROM r")
    with pytest.raises(LimitError, match="max_expansion"):
        LabelTable.read(tmp_path / "a.db")


def test_views_cannot_use_functions_that_the_program_does_not_trust(tmp_path):
    """A view may be written by a stranger; so may a name that it gives to a table."""
    run(tmp_path / "a.db", "CREATE VIEW v AS SELECT load_extension('evil') AS item")
    with pytest.raises(InputError, match="load_extension"):
        LabelTable.read(tmp_path / "a.db")


@pytest.mark.parametrize("end", [16, 1000, 3000])
def test_a_file_that_is_cut_short(database, end):
    database.write_bytes(database.read_bytes()[:end])
    with pytest.raises(InputError, match=r"labels\.sqlite: SQLite cannot read this"):
        LabelTable.read(database)


def test_an_empty_database(tmp_path):
    run(tmp_path / "a.db", "PRAGMA user_version = 1")
    with pytest.raises(InputError, match=r"a\.db has no table"):
        LabelTable.read(tmp_path / "a.db")


@pytest.mark.parametrize("content", [b"item,worker,label\na,k,x\n", b'{"item": 1}\n'])
def test_a_query_is_for_databases(read, content):
    with pytest.raises(InputError, match=r"labels\.csv is not a database\. A query"):
        read(content, query="SELECT 1")


def test_several_databases_are_read_together(database, tmp_path):
    other = tmp_path / "more.sqlite"
    other.write_bytes(database.read_bytes())
    run(other, "UPDATE labels SET task = 'z' || task")
    assert LabelTable.read(tmp_path).n_items == 4
    query = "SELECT * FROM labels WHERE worker = 2"
    assert LabelTable.read([database, other], query=query).n_labels == 4


def test_rows_in_several_batches(tmp_path):
    path = tmp_path / "a.db"
    counting = "WITH RECURSIVE r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r LIMIT 25000)"
    run(
        path,
        f"CREATE TABLE t AS {counting} SELECT n AS item, n % 7 AS worker, n % 3 AS label FROM r",
    )
    table = LabelTable.read(path)
    assert table.n_items == 25_000
    assert table.to_frame().rows()[20_001] == ("20001", "2", "0")


def test_standard_input(database, monkeypatch):
    from annotrace.labels.files import standard_input

    class Stream:
        buffer = io.BytesIO(database.read_bytes())

    monkeypatch.setattr("sys.stdin", Stream())
    assert rows(LabelTable.read(standard_input())) == EXPECTED
