"""Parquet files read by several processes give the table that one process reads."""

import json
from functools import partial
from itertools import chain

import numpy as np
import polars as pl
from several_processes import call_in_all

from annotrace.distributed import joined
from annotrace.errors import InputError
from annotrace.labels import LabelTable
from annotrace.labels.building import TableOptions
from annotrace.labels.columns import ColumnNames
from annotrace.labels.parquet_columns import ParquetColumns
from annotrace.labels.reading import ExportOptions, open_documents, read_parts
from annotrace.labels.reading_together import (
    answer_first,
    others_answer,
    part_of_rows,
    share_columns,
)


def write_files(folder, lengths=(7, 0, 16, 2), **columns):
    rng, n = np.random.default_rng(0), sum(lengths)
    frame = pl.DataFrame(
        {
            "task": rng.permutation([f"t{k % 9}" for k in range(n)]),
            "worker": [f"w{k}" for k in rng.integers(5, size=n)],
            "answer": np.array(["yes", "no", "3"])[rng.integers(3, size=n)],
            **columns,
        }
    )
    start = 0
    for number, length in enumerate(lengths):
        if length:
            frame[start : start + length].write_parquet(
                folder / f"{number}.parquet", row_group_size=3
            )
        start += length
    return frame


def read(pattern, share=None):
    return read_parts(pattern, ColumnNames(), TableOptions(), ExportOptions(), share=share)[0]


def read_in_parts(pattern):
    """Read as one of several processes; print which rows were read, and how the reading ended."""
    seen, rows, same = [], ParquetColumns.rows, None

    def watched(self, start, stop):
        seen.append([self.path.name, start, stop])
        return rows(self, start, stop)

    ParquetColumns.rows = watched
    with joined() as processes:
        if not processes.is_first:
            answer_first(lambda: open_documents(pattern), processes)
        else:
            share = partial(share_columns, processes=processes)
            with others_answer(processes):
                together = outcome(pattern, share)
            same = together == outcome(pattern)
    print(json.dumps([same, seen]))


def outcome(pattern, share=None):
    """Return the table, its names in order, or the message of the error."""
    try:
        table = LabelTable(**read(pattern, share))
    except InputError as error:
        return str(error)
    return table, [getattr(table, part).tolist() for part in ("items", "annotators", "classes")]


def test_each_process_reads_its_rows_and_the_first_has_the_table(tmp_path):
    write_files(tmp_path)
    ended = call_in_all(3, read_in_parts, tmp_path, "*.parquet")
    assert [each.code for each in ended] == [0, 0, 0], ended
    said = [json.loads(each.output) for each in ended]
    assert said[0][0] is True
    assert [rows for _, rows in said] == [
        [["0.parquet", 0, 7], ["2.parquet", 0, 1]],
        [["2.parquet", 1, 9]],
        [["2.parquet", 9, 16], ["3.parquet", 0, 2]],
    ]


def test_scores_are_refused_with_the_message_of_one_process(tmp_path):
    # Whether 1.0 is written as 1 depends on the other values, so that one process reads them.
    write_files(tmp_path, answer=[1.0, 2.5, 1.0, 3.0, 2.5] * 5)
    ended = call_in_all(2, read_in_parts, tmp_path, "*.parquet")
    assert [json.loads(each.output)[0] for each in ended] == [True, None], ended


def test_other_files_are_read_by_the_first_process_alone(tmp_path):
    write_files(tmp_path).write_csv(tmp_path / "labels.csv")
    ended = call_in_all(2, read_in_parts, tmp_path, "labels.csv")
    assert [json.loads(each.output) for each in ended] == [[True, []], [None, []]], ended


def test_parts_of_rows_are_those_of_all_files(tmp_path):
    frame = write_files(tmp_path)
    documents = open_documents(tmp_path)
    for size in (1, 2, 5, 25):
        parts = [part_of_rows(documents, rank, size).column("task") for rank in range(size)]
        named = [part.names[part.codes].tolist() for part in parts]
        assert max(map(len, named)) - min(map(len, named)) <= 1
        assert list(chain.from_iterable(named)) == frame["task"].to_list()
