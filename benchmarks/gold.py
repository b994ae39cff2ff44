"""What gold items are worth on panels of judges: accuracy, and intervals of judges' accuracies.

For each panel and number of gold items: the mean over draws of the accuracy on all other items, of
the default aggregation with and without gold items, of Dawid-Skene clamped to them, and of the best
judge picked on them; and over the first ten draws how many judges' accuracies 90 % intervals cover
and how wide they are, beside Wilson intervals from gold items alone. With --text, the classes
predicted from the texts, out of fold, are features of the regression::

    python benchmarks/gold.py ../shared/data/crowd/judges --out results/gold.jsonl
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from annotrace.aggregation import make
from annotrace.aggregation.gold_choice import choose_by_gold
from annotrace.crowd.gold_accuracy import gold_accuracy
from annotrace.crowd.result import CrowdResult
from annotrace.diagnosis.calibration import share_interval
from annotrace.labels import LabelTable

Array = NDArray[Any]

PANELS = ("babe_8shot", "babe_zeroshot")
SIZES = (50, 100, 400)
N_DRAWS, N_INTERVAL_DRAWS = 50, 10


def draw_gold(table: LabelTable, size: int, seed: int) -> Array:
    """Return the true classes of some random items, and -1 elsewhere."""
    assert table.truth is not None
    chosen = np.random.default_rng(seed).choice(table.n_items, size, replace=False)
    gold = np.full(table.n_items, -1, np.int32)
    gold[chosen] = table.truth[chosen]
    return gold


def best_judge(table: LabelTable, gold: Array) -> Array:
    """Return the answers of the judge with the most correct gold labels, majority elsewhere."""
    known = gold[table.item] >= 0
    right = np.bincount(
        table.annotator[known], gold[table.item][known] == table.label[known], table.n_annotators
    )
    total = np.bincount(table.annotator[known], minlength=table.n_annotators)
    best = np.argmax(right / np.maximum(total, 1))
    estimate = table.votes().argmax(axis=1)
    own = table.annotator == best
    estimate[table.item[own]] = table.label[own]
    return np.asarray(estimate)


def text_probabilities(features: Any, posterior: Array, gold: Array) -> Array:
    """Return classes predicted from the text, out of fold, given estimated classes and gold."""
    target = np.where(gold >= 0, gold, posterior.argmax(axis=1))
    predicted = np.empty(posterior.shape)
    for rest, held_out in KFold(5, shuffle=True, random_state=0).split(target):
        model = LogisticRegression(C=3).fit(features[rest], target[rest])
        predicted[held_out] = model.predict_proba(features[held_out])
    return predicted


def with_text(result: CrowdResult, features: Any) -> Array:
    """Return the estimates of a result, chosen again with the texts as features."""
    assert result.held_out is not None
    text = text_probabilities(features, result.posterior, result.gold)
    choice = choose_by_gold(result.table, result.gold, result.held_out, text)
    return choice.posterior.argmax(axis=1)


def intervals(table: LabelTable, gold: Array, held_out: Array) -> dict[str, float]:
    """Return coverage and median width of intervals of judges' accuracies."""
    known = gold[table.item] >= 0
    correct = table.label == table.truth[table.item]  # type: ignore[index]
    n = table.labels_per_annotator()
    true = np.bincount(table.annotator, correct, table.n_annotators) / n
    found = gold_accuracy(table, gold, held_out)
    low, high = found.interval()
    right = np.bincount(table.annotator[known], correct[known], table.n_annotators)
    pairs = zip(right / found.n_gold, found.n_gold.tolist(), strict=True)
    alone = np.array([share_interval(float(share), size) for share, size in pairs])
    return {
        "covered": float(np.mean((low <= true) & (true <= high))),
        "width": float(np.median(high - low)),
        "covered_gold_alone": float(np.mean((alone[:, 0] <= true) & (true <= alone[:, 1]))),
        "width_gold_alone": float(np.median(alone[:, 1] - alone[:, 0])),
    }


def draw_results(
    table: LabelTable, size: int, seed: int, without: Array, features: Any
) -> dict[str, float]:
    """Return the figures of one draw of gold items."""
    gold = draw_gold(table, size, seed)
    names, rest = _by_name(table, gold), gold < 0
    fitted = make(random_state=0).fit(table, gold=names)
    estimates = {
        "default": fitted.result_.estimate,
        "without_gold": without,
        "dawid_skene": make("dawid-skene", random_state=0).fit(table, gold=names).result_.estimate,
        "best_judge": best_judge(table, gold),
    }
    if features is not None:
        estimates["with_text"] = with_text(fitted.result_, features)
    row = {name: float(np.mean((e == table.truth)[rest])) for name, e in estimates.items()}
    if seed < N_INTERVAL_DRAWS and fitted.result_.held_out is not None:
        row |= intervals(table, gold, fitted.result_.held_out)
    return row


def run(folder: Path, n_draws: int, text: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each panel and number of gold items: means over draws."""
    for panel in PANELS:
        table = LabelTable.read(folder / f"{panel}.csv.gz")
        without = make(random_state=0).fit(table).result_.estimate
        features = _text_features(folder, table) if text else None
        for size in SIZES:
            rows = [draw_results(table, size, seed, without, features) for seed in range(n_draws)]
            names = rows[0]
            means = {name: np.mean([row[name] for row in rows if name in row]) for name in names}
            rounded = {name: round(float(mean), 4) for name, mean in means.items()}
            yield {"panel": panel, "n_gold": size, "n_draws": n_draws, **rounded}


def _by_name(table: LabelTable, gold: Array) -> dict[Any, Any]:
    items = np.flatnonzero(gold >= 0)
    classes = table.classes[gold[items]].tolist()
    return dict(zip(table.items[items].tolist(), classes, strict=True))


def _text_features(folder: Path, table: LabelTable) -> Any:
    frame = pl.read_csv(folder / "babe_text.csv.gz", schema_overrides={"item": pl.String})
    by_item = dict(frame.select("item", "text").rows())
    texts = [by_item[str(item)] for item in table.items.tolist()]
    return TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit_transform(texts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=N_DRAWS)
    parser.add_argument("--text", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = []
    for row in run(options.folder, options.draws, options.text):
        print(json.dumps(row), flush=True)
        rows.append(row)
    if options.out is not None:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows))
