"""Export records with Argilla's own serialisers, without a server.

Run by hand, in a virtual environment with argilla, datasets and requests:

    python tests/tools/make_argilla_exports.py OUT

Six records have three answers each; record k has k draft or discarded answers modulo three among
them, so that twelve of eighteen are submitted.
"""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import argilla as rg
from argilla.records._io import GenericIO, JsonIO
from datasets import Dataset

STATUS = ("draft", "discarded")


def make_records(n_records: int = 6) -> list[rg.Record]:
    users = [uuid.UUID(int=number) for number in (1, 2, 3)]
    records = []
    for k in range(n_records):
        responses = [
            rg.Response(
                question_name="mood",
                value=("bad", "good")[(j + k) % 2],
                user_id=user,
                status=STATUS[j % 2] if j < k % 3 else "submitted",
            )
            for j, user in enumerate(users)
        ]
        fields, metadata = {"text": f"Text {k}"}, {"slug": f"d/{k}"}
        records.append(rg.Record(f"rec-{k}", fields, metadata, responses=responses))
    return records


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    records = make_records()
    JsonIO.to_json(records, out / "to_json.json")
    for flatten in (False, True):
        listed = GenericIO.to_list(records, flatten=flatten)
        (out / f"to_list_{flatten}.json").write_text(json.dumps(listed))
        for orient in ("names", "index"):
            by = GenericIO.to_dict(records, flatten=flatten, orient=orient)
            (out / f"to_dict_{flatten}_{orient}.json").write_text(json.dumps(by))
    dataset = Dataset.from_list(GenericIO.to_list(records, flatten=True))
    dataset.to_parquet(out / "ds.parquet")
    dataset.to_json(out / "ds.jsonl")
    dataset.to_csv(out / "ds.csv")
    dataset.save_to_disk(out / "disk")
    print("argilla", rg.__version__, "wrote to", out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
