"""Every export of the shared data against counts that do not come from the readers."""

import os
from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable

EXPORTS = Path(__file__).parents[3] / ".." / "shared" / "data" / "exports"
needs_exports = pytest.mark.skipif(not EXPORTS.is_dir(), reason="the real files are not here")

# File or folder, options, and the numbers of items, annotators, labels and classes.
PROJECT, WITH_TRUTH = (58, 4, 168, 3), (58, 5, 169, 3)
RECORDS, SINGLE, FRAME, DATASET = (57, 4, 160, 3), (57, 3, 131, 3), (60, 5, 195, 3), (59, 4, 170, 3)
COUNTS = [
    *[(f"label_studio/{name}.json", {}, PROJECT) for name in ("JSON", "JSON_all")],
    *[(f"label_studio/snap_{name}.json", {}, PROJECT) for name in ("default", "full", "noskip")],
    *[(f"label_studio/rest_{name}.json", {}, PROJECT) for name in ("ptasks", "tasks")],
    ("label_studio/rest_task.json", {}, (1, 3, 5, 2)),
    *[(f"label_studio/JSON_MIN{name}.json", {}, WITH_TRUTH) for name in ("", "_all")],
    *[(f"label_studio/CSV{name}.csv", {}, WITH_TRUTH) for name in ("", "_all")],
    *[(f"label_studio/TSV{name}.tsv", {}, WITH_TRUTH) for name in ("", "_all")],
    *[
        (f"label_studio/{name}", {}, (8, 3, 24, 2))
        for name in ("qa2.csv", "qa_CSV.csv", "qa_TSV.tsv", "qa_JSON.json", "qa_JSON_MIN.json")
    ],
    *[
        (f"label_studio/multi_{name}", {"question": question}, (6, 3, 18, n_classes))
        for name in ("CSV.csv", "TSV.tsv", "JSON.json", "JSON_MIN.json")
        for question, n_classes in (("mood", 2), ("stars", 5), ("tax", 2))
    ],
    *[
        (f"argilla/{name}", {}, RECORDS)
        for name in (
            *("disk", "ds.jsonl", "ds.parquet", "pd.json"),
            *("to_dict_True_index.json", "to_dict_True_names.json", "to_list_True.json"),
        )
    ],
    *[(f"doccano/doccano_single_{name}", {}, SINGLE) for name in ("CSV", "JSON", "JSONL")],
    ("doccano/doccano_single_approved", {}, (49, 3, 85, 3)),
    ("doccano/doccano_tweets", {}, (12, 3, 36, 3)),
    *[
        (f"doccano/doccano_shared_{name}", {"annotator_name": "all"}, (10, 1, 10, 2))
        for name in ("CSV", "JSONL")
    ],
    *[
        (f"crowd_kit_cleanlab/{name}", {}, FRAME)
        for name in (
            *("cl_wide.csv", "wide.csv", "wide.npy", "wide.parquet", "wide_num.csv"),
            *("wide_num.json", "wide_num.parquet", "long.csv", "long.jsonl", "long.parquet"),
            *("long.tsv", "long_cols.json", "long_index.csv", "long_rec.json"),
        )
    ],
    (
        "crowd_kit_cleanlab/toloka.tsv",
        {"item": "INPUT:image", "annotator": "ASSIGNMENT:worker_id", "label": "OUTPUT:result"},
        FRAME,
    ),
    ("crowd_kit_cleanlab/mv.csv", {}, (60, 1, 60, 3)),
    *[
        (f"huggingface/{name}", {}, DATASET)
        for name in (
            "dict_disk",
            "long_disk",
            "long.csv",
            "long.jsonl",
            "long.parquet",
            "rows.json",
        )
    ],
    *[(f"huggingface/{name}", {}, (60, 4, 170, 3)) for name in ("wide.parquet", "wide_disk")],
    ("cvat", {}, (6, 2, 12, 2)),
]

REFUSED = {
    "label_studio/rest_view.json": "is a web page",
    **{
        f"argilla/{name}.json": "no status"
        for name in ("to_json", "to_list_False", "to_dict_False_index", "to_dict_False_names")
    },
    "argilla/ds.csv": "the csv of Argilla",
    "crowd_kit_cleanlab/pair.csv": "found no item column",
    "crowd_kit_cleanlab/rows.json": "is a list of lists",
    "crowd_kit_cleanlab/wide_num_noindex.csv": "found no item",
    "doccano/doccano_multi_CSV": "joins by '#'",
    "doccano/doccano_multi_JSONL": "several labels in one answer",
    "doccano/doccano_spans": "spans of text",
    **{f"huggingface/nested{end}": "unclear" for end in (".jsonl", ".parquet", "_disk")},
    **{f"huggingface/struct{end}": "several labels" for end in (".jsonl", ".parquet")},
    "labelbox/import.ndjson": "name no annotators",
}


@needs_exports
@pytest.mark.parametrize(("name", "options", "counts"), COUNTS)
def test_every_export_has_the_labels_that_were_given(name, options, counts):
    table = LabelTable.read(EXPORTS / name, **options)
    assert (table.n_items, table.n_annotators, table.n_labels, table.n_classes) == counts


@needs_exports
@pytest.mark.parametrize("name", REFUSED)
def test_an_export_that_cannot_be_read_is_refused(name):
    with pytest.raises(InputError, match=REFUSED[name]) as caught:
        LabelTable.read(EXPORTS / name)
    assert "\n" not in str(caught.value)


@needs_exports
def test_no_export_is_left_out():
    listed = [EXPORTS / name for name in (*(name for name, _, _ in COUNTS), *REFUSED)]
    files = [Path(folder, file) for folder, _, names in os.walk(EXPORTS) for file in names]
    missing = [
        file
        for file in files
        if file != EXPORTS / "README.md" and not any(file.is_relative_to(name) for name in listed)
    ]
    assert not missing
