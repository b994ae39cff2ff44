"""Names of every kind are read unchanged from every format."""

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest

from annotrace.labels import LabelTable
from annotrace.labels.formats import FORMATS

HOSTILE = [
    "say \"hi\", 'there'",
    "👩‍🔬 été ß",
    "<script>alert(1)</script> & <b>",
    "مرحبا\u202eabc",
    "=HYPERLINK(1)",
    "null",
    "a|b;c",
    "x" * 500,
]


def labels_of(names):
    """Every name once as item, annotator and label, and a second label for each item."""
    shifted = names[1:] + names[:1]
    return sorted(
        {*zip(names, names, names, strict=True), *zip(names, shifted, names, strict=True)}
    )


def cvat(rows):
    root = ET.Element("annotations")
    ET.SubElement(ET.SubElement(ET.SubElement(root, "meta"), "job"), "assignee")
    for item, _, label in rows:
        image = ET.SubElement(root, "image", name=item)
        ET.SubElement(image, "tag", label=label)
    return ET.tostring(root, encoding="unicode")


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def table(records):
    records, text = list(records), io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), quoting=csv.QUOTE_NONNUMERIC)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


WRITERS = {
    "label-studio": lambda rows: json.dumps(
        [
            {
                "id": 1,
                "data": {"name": item},
                "annotations": [
                    {
                        "completed_by": {"email": who},
                        "result": [
                            {"from_name": "q", "type": "choices", "value": {"choices": [label]}}
                        ],
                    }
                ],
            }
            for item, who, label in rows
        ]
    ),
    "label-studio-min": lambda rows: json.dumps(
        [
            {"name": i, "id": 1, "q": label, "annotator": a, "annotation_id": 1, "lead_time": 1}
            for i, a, label in rows
        ]
    ),
    "label-studio-csv": lambda rows: table(
        {"annotation_id": k, "annotator": a, "created_at": "", "id": i, "lead_time": 1}
        | {"name": i, "q": label, "updated_at": ""}
        for k, (i, a, label) in enumerate(rows, start=1)
    ),
    "prodigy": lambda rows: lines(
        {"name": i, "_input_hash": 1, "accept": [label], "answer": "accept", "_annotator_id": a}
        for i, a, label in rows
    ),
    "argilla": lambda rows: json.dumps(
        [
            {
                "id": i,
                "fields": {"name": i},
                "responses": {"q": [{"value": label, "user_id": a, "status": "submitted"}]},
            }
            for i, a, label in rows
        ]
    ),
    "labelbox": lambda rows: lines(
        {
            "data_row": {"id": i, "name": i},
            "projects": {
                "p": {
                    "labels": [
                        {
                            "label_details": {"created_by": a},
                            "annotations": {
                                "classifications": [{"name": "q", "radio_answer": {"name": label}}]
                            },
                        }
                    ]
                }
            },
        }
        for i, a, label in rows
    ),
    "ground-truth": lambda rows: json.dumps(
        [
            {
                "datasetObjectId": "0",
                "dataObject": {"name": i},
                "annotations": [
                    {
                        "workerId": a,
                        "annotationData": {"content": json.dumps({"q": {"label": label}})},
                    }
                ],
            }
            for i, a, label in rows
        ]
    ),
    "peerannot": lambda rows: json.dumps(
        {i: {a: label for j, a, label in rows if j == i} for i, _, _ in rows}
    ),
    "doccano": lambda rows: lines(
        {"id": 1, "name": i, "text": i, "label": [c]} for i, _, c in rows
    ),
    "cvat": cvat,
}


@pytest.mark.parametrize("format", [known.name for known in FORMATS])
def test_hostile_names_come_through_unchanged(format, tmp_path):
    rows = labels_of(HOSTILE)
    (tmp_path / "export").write_text(WRITERS[format](rows), encoding="utf-8")
    options = {} if format in ("peerannot", "cvat") else {"item": "name"}
    if format in ("doccano", "cvat"):
        options["annotator_name"] = HOSTILE[0]
        rows = [(item, HOSTILE[0], label) for item, _, label in rows]
    if format == "label-studio-csv":
        options["question"] = "q"  # Annotators agree on every task.
    table = LabelTable.read(tmp_path / "export", **options)
    assert sorted(table.to_frame().rows()) == sorted(rows)
