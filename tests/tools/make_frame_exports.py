"""Write labels as Hugging Face datasets, cleanlab and crowd-kit hold them.

Run by hand, in a virtual environment with datasets, cleanlab, crowd-kit and pyarrow:

    python tests/tools/make_frame_exports.py OUT

Ten items, three annotators w0 to w2, and a label in every cell whose item and annotator do not sum
to a multiple of four: 23 labels.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cleanlab
import crowdkit
import datasets
import pandas as pd
from cleanlab.internal.multiannotator_utils import format_multiannotator_labels
from crowdkit.aggregation import MajorityVote

CLASSES = ["neg", "neu", "pos"]


def long_rows() -> list[dict]:
    cells = [(k, j) for k in range(10) for j in range(3) if (k + j) % 4]
    return [{"task": f"t{k}", "worker": f"w{j}", "label": (k + j % 2) % 3} for k, j in cells]


def write_datasets(rows: list[dict], out: Path) -> None:
    dataset = datasets.Dataset.from_list(rows).cast_column(
        "label", datasets.ClassLabel(names=CLASSES)
    )
    dataset.to_parquet(out / "long.parquet")
    dataset.save_to_disk(out / "long_disk", num_shards=2)
    saved = datasets.load_from_disk(out / "long_disk")
    saved.filter(lambda row: row["label"] == 0)  # Leaves a cache file beside the data.
    split = dataset.train_test_split(0.3, seed=0)
    split.save_to_disk(out / "dict_disk")


def write_frames(rows: list[dict], out: Path) -> None:
    long = pd.DataFrame(rows)
    long.to_csv(out / "long.csv", index=False)
    wide = long.pivot(index="task", columns="worker", values="label")
    numbered_classes, _ = format_multiannotator_labels(wide)
    numbered_classes.to_csv(out / "cl_wide.csv")
    numbered = wide.reset_index(drop=True).rename_axis(columns=None)
    numbered.to_csv(out / "wide_num.csv")
    numbered.to_json(out / "wide_num.json")
    numbered.to_parquet(out / "wide_num.parquet")
    MajorityVote().fit_predict(long).to_csv(out / "mv.csv")


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    rows = long_rows()
    write_datasets(rows, out)
    write_frames(rows, out)
    versions = (datasets.__version__, cleanlab.__version__, crowdkit.__version__, pd.__version__)
    print("datasets {}, cleanlab {}, crowd-kit {}, pandas {}".format(*versions), "wrote to", out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
