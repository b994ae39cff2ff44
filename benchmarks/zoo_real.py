"""The real crowds of the zoo: labels and truth, without features."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from annotrace.labels import LabelTable

ELEVEN = (
    *("adult_content2", "bluebirds", "dog", "hitspam_crowdflower", "product_match"),
    *("sentiment_polarity_amt500", "snow2008_rte", "snow2008_temp", "snow2008_wsd"),
    *("weather_sentiment_amt", "zencrowd_us"),
)
PANELS = ("babe_8shot", "babe_zeroshot")
FILES = {
    **{name: f"label_only/{name}.csv.gz" for name in (*ELEVEN, "web_relevance", "facts")},
    **{name: f"judges/{name}.csv.gz" for name in PANELS},
    "amazon_isbook": "text_crowds/amazon_isbook.csv.gz",
    "labelme": "labelme.npz",
    "cifar10n": "cifar10n.npz",
    "face_sentiment": "face_sentiment.npz",
    "sentiment_polarity": "sentiment_polarity.npz",
}
"""By crowd: its file in the folder `crowd` of the data."""
ARRAYS = {
    "labelme": ("A", "y_train"),
    "cifar10n": ("R", "clean"),
    "face_sentiment": ("A", "y"),
    "sentiment_polarity": ("A", "y"),
}
"""By npz file: the arrays of labels (n_items, n_annotators), -1 if missing, and of true classes."""


def read_crowd(name: str, data: Path) -> LabelTable:
    """Read a real crowd with its truth from the folder `data`."""
    path = data / "crowd" / FILES[name]
    if name not in ARRAYS:
        return LabelTable.read(path, truth="truth")
    with np.load(path) as arrays:
        labels, truth = (arrays[part].astype(np.int64) for part in ARRAYS[name])
    item, annotator = np.nonzero(labels >= 0)
    return LabelTable.from_codes(
        item,
        annotator,
        labels[item, annotator],
        n_items=len(labels),
        n_annotators=labels.shape[1],
        n_classes=int(max(labels.max(), truth.max())) + 1,
        truth=truth,
    )
