"""The files of checkpoints: records of tensors and plain values, each with its checksum.

A file is a line that names the format, then any number of records: the length and SHA-256 of a
safetensors file, and that file. Nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path
from typing import IO, Any, NamedTuple

from torch import Tensor

from annotrace.atomic import atomic_write, named_errors, remove_partial, sync_file
from annotrace.errors import RunError
from annotrace.regular_files import open_regular
from annotrace.storage import pack_tensors, parse_json, parse_tensors, select_part

FORMAT = 4
_NAME = b"annotrace checkpoint "
_START = _NAME + b"%d\n" % FORMAT
_HEADER = struct.Struct("<Q32s")


class Record(NamedTuple):
    """Tensors and plain values, by name."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]

    def part(self, name: str) -> dict[str, Tensor]:
        """Return the tensors of one part of what `join_parts` returned."""
        return select_part(self.tensors, name)


class RecordFile:
    """A file of records, which is replaced or appended to: always as a whole record."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether the file exists."""
        return os.path.lexists(self.path)

    def remove(self) -> None:
        """Remove the file, and what a process that was killed while writing it left."""
        self.path.unlink(missing_ok=True)
        remove_partial(self.path)

    def replace(self, *records: Record) -> None:
        """Write a file of these records."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.path) as file:
            file.write(_START)
            for record in records:
                _write(file, record)

    def append(self, record: Record) -> None:
        """Add a record; if that fails, the file is as before."""
        end = self._places()[-1]
        with named_errors(self.path), self.path.open("r+b") as file:
            try:
                file.truncate(end)
                file.seek(end)
                _write(file, record)
                sync_file(file)
            except BaseException:
                os.ftruncate(file.fileno(), end)
                raise

    def read(self, number: int) -> Record | None:
        """Return a record, or None if there are not as many.

        Raises
        ------
        RunError
            If the file is damaged, from another version, or something else.
        """
        places = self._places()
        if number + 1 >= len(places):
            return None
        with open_regular(self.path) as file:
            file.seek(places[number])
            size, checksum = _HEADER.unpack(file.read(_HEADER.size))
            content = file.read(size)
        if hashlib.sha256(content).digest() != checksum:
            raise self.damaged(f"the checksum of record {number} differs")
        stored = parse_tensors(content, str(self.path))
        values = parse_json(stored.metadata.get("values", "null"), str(self.path))
        if not isinstance(values, dict):
            raise self.damaged(f"record {number} has no values")
        return Record(stored.tensors, values)

    def damaged(self, reason: str) -> RunError:
        """Return the error that the file cannot be used."""
        return RunError(
            f"{self.path}: the file is damaged, or not a checkpoint of annotrace ({reason}); "
            "delete it to start again, or use another file name."
        )

    def _places(self) -> list[int]:
        """Return where each complete record begins, and where the last one ends.

        A process that was killed in `append` may have left an incomplete record at the end.
        """
        with open_regular(self.path) as file:
            total = os.fstat(file.fileno()).st_size
            start = file.read(len(_START))
            if start != _START:
                if start.startswith(_NAME):
                    raise RunError(
                        f"{self.path}: written by another version of annotrace; delete it."
                    )
                raise self.damaged("it does not begin like one")
            places = [len(start)]
            while len(header := file.read(_HEADER.size)) == _HEADER.size:
                end = file.tell() + _HEADER.unpack(header)[0]
                if end > total:
                    break
                places.append(end)
                file.seek(end)
        return places


def _write(file: IO[bytes], record: Record) -> None:
    values = json.dumps(record.values, allow_nan=False)
    content = pack_tensors(record.tensors, {"values": values})
    file.write(_HEADER.pack(len(content), hashlib.sha256(content).digest()))
    file.write(content)
