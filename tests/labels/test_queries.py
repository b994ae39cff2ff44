import sqlite3
from contextlib import closing
from datetime import date
from decimal import Decimal

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.queries import check_select


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE labels (task, worker, answer, is_true)")
        rows = [(1, "kim", "x", "x"), (1, "lee", "y", "x"), (2, "kim", "y", None)]
        connection.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", rows)
        yield connection


def test_a_query_makes_the_table_that_its_columns_make(connection):
    table = LabelTable.from_sql("SELECT * FROM labels", connection, truth="is_true")
    columns = {"task": [1, 1, 2], "worker": ["kim", "lee", "kim"], "answer": ["x", "y", "y"]}
    assert table == LabelTable.from_long({**columns, "truth": ["x", "x", None]})
    connection.execute("SELECT 1")  # It stays open.


def test_options_and_parameters(connection):
    query = "SELECT task AS t, worker AS w, answer AS a FROM labels WHERE worker = ?"
    names = {"item": "t", "annotator": "w", "label": "a"}
    table = LabelTable.from_sql(query, connection, parameters=["kim"], **names, classes=["x", "y"])
    assert table.to_frame().rows() == [(1, "kim", "x"), (2, "kim", "y")]


class Cursor:
    """A cursor as DB-API 2.0 describes it, of a database with types of its own."""

    description = (("item", 1), ("worker", 2), ("label", 3))
    closed = False

    def execute(self, query):
        self.query = query

    def fetchall(self):
        return [(Decimal("1.5"), date(2024, 1, 2), True), (Decimal(2), date(2024, 1, 3), False)]

    def close(self):
        self.closed = True


def test_connections_of_other_packages():
    class Connection:
        used = Cursor()

        def cursor(self):
            return self.used

    connection = Connection()
    table = LabelTable.from_sql("SELECT '50%' FROM labels", connection)
    assert table.items.tolist() == ["1.5", "2"]
    assert table.annotators.tolist() == ["2024-01-02", "2024-01-03"]
    assert table.classes.tolist() == ["False", "True"]
    assert connection.used.query == "SELECT '50%' FROM labels"
    assert connection.used.closed


def test_no_rows(connection):
    with pytest.raises(InputError, match="the query selects no rows"):
        LabelTable.from_sql("SELECT * FROM labels WHERE task = 9", connection)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1",
        "  -- a remark\n select 1",
        "/* delete from */ SELECT 1",
        "(SELECT 1) UNION (SELECT 2)",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "VALUES (1)",
        "SELECT 'insert into', \"update a set\" FROM labels",
        "SELECT updated, deleted FROM labels FOR UPDATE",
    ],
)
def test_queries_that_read(query):
    check_select(query, "x")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "DELETE FROM labels",
        "-- SELECT\nDROP TABLE labels",
        "INSERT INTO labels SELECT 1",
        "WITH a AS (DELETE FROM labels RETURNING *) SELECT * FROM a",
        "WITH a AS (UPDATE labels\nSET task = 1 RETURNING *) SELECT * FROM a",
        "SELECT * INTO copy FROM labels",
        "EXPLAIN SELECT 1",
        "SELECTED",
    ],
)
def test_queries_that_may_write(query, connection):
    with pytest.raises(InputError, match=r"expected a query that selects rows"):
        check_select(query, "x")
    with pytest.raises(InputError, match="the query: expected"):
        LabelTable.from_sql(query, connection)
