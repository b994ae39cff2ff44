import sys

import pytest

from annotrace.errors import InputError, LimitError
from annotrace.labels import LabelTable
from annotrace.labels.side_tables import read_gold
from annotrace.limits import Limits

duckdb = pytest.importorskip("duckdb")

EXPECTED = [("007", "1", "y"), ("007", "2", "x"), ("b", "2", "y")]


def run(path, *statements):
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "labels.duckdb"
    run(
        path,
        "CREATE TABLE labels (task VARCHAR, worker INTEGER, answer VARCHAR)",
        "INSERT INTO labels VALUES ('007', 1, 'y'), ('b', 2, 'y'), ('007', 2, 'x')",
    )
    return path


def rows(table):
    return sorted(row[:3] for row in table.to_frame().rows())


def test_the_only_table_is_read_as_text(database):
    assert rows(LabelTable.read(database)) == EXPECTED
    assert rows(LabelTable.read(database.rename(database.with_name("labels")))) == EXPECTED


def test_a_query_selects_and_orders(database):
    query = "SELECT worker, task, answer FROM labels WHERE worker = 2 ORDER BY task DESC; -- all"
    table = LabelTable.read(database, query=query)
    assert rows(table) == EXPECTED[1:]
    assert table.items.tolist() == ["b", "007"]


def test_values_are_written_as_duckdb_does(database):
    query = "SELECT UNNEST([1.50, 2]) AS item, true AS worker, DATE '2024-01-02' AS label"
    table = LabelTable.read(database, query=query, classes=["2024-01-02", "x"])
    assert rows(table) == [("1.50", "true", "2024-01-02"), ("2.00", "true", "2024-01-02")]


def test_several_tables_need_a_query(database):
    run(database, "CREATE VIEW v AS SELECT * FROM labels")
    with pytest.raises(
        InputError, match=r"several tables \('labels', 'v'\).*--query 'SELECT \* FR"
    ):
        LabelTable.read(database)


def test_gold_in_a_database(tmp_path):
    run(tmp_path / "g.duckdb", "CREATE TABLE gold AS SELECT 'a' AS item, 'x' AS truth")
    assert read_gold(tmp_path / "g.duckdb") == {"a": "x"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("DROP TABLE labels", "expected a query that selects rows"),
        ("COPY labels TO 'stolen.csv'", "expected a query that selects rows"),
        ("SELECT 1; SELECT 2", "expected one query, but got 2"),
        ("SELECT * FROM read_csv('{other}')", "file system operations are disabled"),
        ("SELECT * FROM read_text('{other}')", "file system operations are disabled"),
        ("SELECT * FROM '{other}'", "file system operations are disabled"),
        ("SELECT * FROM EXPECTED", "does not exist"),
        ("SELECT * FROM nowhere", "Table with name nowhere does not exist"),
        ("SELECT * FROM labels WHERE worker = 9", "has no rows that the query selects"),
    ],
)
def test_queries_that_are_refused(database, tmp_path_factory, query, message):
    other = tmp_path_factory.mktemp("other") / "secret.csv"
    other.write_text("item,worker,label\na,b,c\nb,b,d\n")
    with pytest.raises(InputError) as caught:
        LabelTable.read(database, query=query.format(other=other))
    assert message in str(caught.value)
    assert "labels.duckdb" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(database.parent.iterdir()) == [database]


def test_views_have_no_access_to_other_files(tmp_path):
    (tmp_path / "secret.csv").write_text("item,worker,label\na,b,c\nb,b,d\n")
    path = tmp_path / "a.duckdb"
    run(path, f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
    with pytest.raises(InputError, match="disabled by configuration"):
        LabelTable.read(path)


def test_an_endless_query_is_stopped(database):
    query = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r"
    with pytest.raises(LimitError, match=r"limit of 1\. .*--max-seconds on the command line"):
        LabelTable.read(database, query=query, limits=Limits(max_seconds=1))


def test_many_rows_do_not_fill_the_memory(database, monkeypatch):
    monkeypatch.setattr("annotrace.limits.FREE_SIZE", 2**20)
    with pytest.raises(LimitError, match="max_expansion"):
        LabelTable.read(database, query="SELECT range AS item FROM range(1000000000)")


def test_damage(database):
    content = bytearray(database.read_bytes())
    content[:20_000] = content[:12] + bytes(19_988)
    database.write_bytes(content)
    with pytest.raises(InputError, match=r"labels\.duckdb: DuckDB cannot read this"):
        LabelTable.read(database)


def test_without_the_package(database, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError) as caught:
        LabelTable.read(database)
    assert str(caught.value) == (
        f"{database} is a DuckDB database, and reading it needs duckdb: pip install "
        "'annotrace[duckdb]', or export the labels as csv or parquet."
    )
