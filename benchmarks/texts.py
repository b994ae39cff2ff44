"""Crowds that labelled raw texts and pairs of texts: what the texts add to the labels.

usage: python benchmarks/texts.py [--data DIR] [--only sentiment,rte,...] [--methods auto,...]
                                  [--encoder PATH] [--seeds 5] [--out results/texts.jsonl]
                                  [--show FILE ...]

    sentiment  4,999 sentences, 203 annotators, 5.5 labels per item; five folds
    rte        800 pairs of a premise and a hypothesis, 164 annotators, 10 labels per item
    products   8,315 pairs of product records, 176 annotators, 3 labels per item
    reviews    1,000 reviews, 263 annotators, 4.9 labels per item; test part of 4,000

Methods run with their defaults, and nothing in a run is chosen by truth. With `--encoder` they
learn from the features of a pretrained model instead of n-grams. The posterior with text is
compared with those without on the same items: the difference of the accuracies, and its standard
error over items. Writes one JSON line per run, skips runs that the file has with as many threads
(OMP_NUM_THREADS), and prints tables; `--show` prints the tables of earlier runs. The seconds are
those of the fit, without the encoding.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import torch

import annotrace as at

ALONE = ("default", "hierarchical", "majority")
"""Aggregations without text."""

METHODS = ("auto", "vanilla", *ALONE)
BARS = {
    "sentiment": "test >= .735, posterior >= .920, at most 60 s on two cores",
    "rte": "posterior >= .930 or within one standard error of hierarchical",
    "products": "posterior >= .939 or within one standard error of hierarchical",
}
COLUMNS = ("test_accuracy", "oof_accuracy", "posterior_accuracy", "calibration_error", "seconds")
N_FOLDS = 5


class Crowd(NamedTuple):
    """Texts, shape (n_items,) or (n_items, 2), with labels and truth, and test texts."""

    texts: np.ndarray
    table: at.LabelTable
    y: np.ndarray
    test_texts: np.ndarray | None = None
    y_test: np.ndarray | None = None

    def encode(self, encoder: str | None) -> Crowd:
        """Replace the texts by features."""
        if encoder is None:
            return self
        parts = {"texts": self.texts, "test_texts": self.test_texts}
        return self._replace(
            **{name: _encode(part, encoder) for name, part in parts.items() if part is not None}
        )


def _encode(texts: np.ndarray, encoder: str) -> np.ndarray:
    given = list(texts) if texts.ndim == 1 else list(map(tuple, texts))
    return at.data.encode(given, encoder).X


def sentiment(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    z = np.load(data / "crowd" / "sentiment_polarity.npz")
    frame = _read(data / "crowd" / "sentiment_polarity_text.csv.gz")
    texts, y = _objects(frame.filter(pl.col("split") == "train"), ["text"])[:, 0], z["y"]
    order = np.random.default_rng(0).permutation(len(y))
    for fold in range(min(seeds, N_FOLDS)):
        test, train = order[fold::N_FOLDS], np.setdiff1d(order, order[fold::N_FOLDS])
        table = at.LabelTable.from_wide(z["A"][train])
        yield fold, Crowd(texts[train], table, y[train], texts[test], y[test])


def rte(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    labels = data / "crowd" / "label_only" / "snow2008_rte.csv.gz"
    pairs = _read(labels.with_name("snow2008_rte_text.csv.gz")).sort("item")
    table, y = _labels(labels)
    crowd = Crowd(_objects(pairs, ["text", "hypothesis"]), table, y)
    return ((seed, crowd) for seed in range(seeds))


def products(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    labels = data / "crowd" / "label_only" / "product_match.csv.gz"
    pairs = _read(labels.with_name("product_match_pairs.csv.gz")).sort("item")
    records = _read(labels.with_name("product_match_records.csv.gz"))
    joined = pl.concat_str("name", "description", "price", separator=" ", ignore_nulls=True)
    text = dict(records.select("rec", joined).iter_rows())
    texts = pairs.select(pl.col("rec1", "rec2").replace_strict(text))
    table, y = _labels(labels)
    crowd = Crowd(_objects(texts, ["rec1", "rec2"]), table, y)
    return ((seed, crowd) for seed in range(seeds))


def reviews(data: Path, seeds: int) -> Iterator[tuple[int, Crowd]]:
    labels = data / "crowd" / "text_crowds" / "amazon_isbook.csv.gz"
    frame = _read(labels.with_name("amazon_isbook_text.csv.gz")).sort("item")
    texts = _objects(frame, ["text"])[:, 0]
    table, y = _labels(labels)
    n, truth = table.n_items, frame["truth"].to_numpy()
    crowd = Crowd(texts[:n], table, y, texts[n:], truth[n:])
    return ((seed, crowd) for seed in range(seeds))


SETS: dict[str, Callable[[Path, int], Iterator[tuple[int, Crowd]]]] = {
    function.__name__: function for function in (sentiment, rte, products, reviews)
}


def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema_length=None)


def _objects(frame: pl.DataFrame, columns: list[str]) -> np.ndarray:
    return frame.select(columns).to_numpy().astype(object)


def _labels(path: Path) -> tuple[at.LabelTable, np.ndarray]:
    """Return labels, whose items are rows, and the truth."""
    frame = _read(path)
    codes = (frame[name].to_numpy() for name in ("item", "annotator", "label"))
    truth = frame.group_by("item").agg(pl.col("truth").first()).sort("item")
    return at.LabelTable.from_codes(*codes), truth["truth"].to_numpy()


def run(method: str, seed: int, crowd: Crowd) -> dict[str, Any]:
    """Fit a method with its defaults and measure it by truth."""
    alone = {name: _aggregation(name, seed).fit(crowd.table) for name in ALONE}
    model = alone[method] if method in alone else at.make(method, random_state=seed)
    started = time.perf_counter()
    fitted = model.fit(*([crowd.table] if method in alone else [crowd.texts, crowd.table]))
    found = {"method": method, "seed": seed, "seconds": round(time.perf_counter() - started, 1)}
    found |= _measure(fitted, crowd)
    if method not in alone:
        right = _is_right(fitted.posterior_, crowd.y)
        found["against"] = {
            name: _compare(right, _is_right(other.posterior_, crowd.y))
            for name, other in alone.items()
        }
    versions = {"annotrace": at.__version__, "torch": torch.__version__}
    return found | {"threads": torch.get_num_threads(), "versions": versions}


def _aggregation(name: str, seed: int) -> Any:
    named = () if name == "default" else (name,)
    return at.aggregation.make(*named, random_state=seed)


def _measure(fitted: Any, crowd: Crowd) -> dict[str, Any]:
    right, confidence = _is_right(fitted.posterior_, crowd.y), fitted.confidence_
    error = at.diagnosis.calibration_error(fitted.posterior_, crowd.y, confidence=confidence)
    found: dict[str, Any] = {"posterior_accuracy": float(right.mean()), "calibration_error": error}
    if hasattr(fitted, "oof_proba_"):
        found["oof_accuracy"] = float(_is_right(fitted.oof_proba_, crowd.y).mean())
        found |= {"mixup": fitted.mixup_, "epochs": fitted.epochs_}
        found["temperature"] = fitted.temperature_
    if crowd.test_texts is not None and hasattr(fitted, "predict_proba"):
        proba = fitted.predict_proba(crowd.test_texts)
        found["test_accuracy"] = float(_is_right(proba, crowd.y_test).mean())
    return found


def _is_right(proba: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    return proba.argmax(axis=1) == y


def _compare(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    gain = ours.astype(float) - theirs
    return {"gain": float(gain.mean()), "error": float(gain.std(ddof=1) / np.sqrt(len(gain)))}


def show(name: str, runs: list[dict[str, Any]]) -> None:
    """Print the means over seeds, and the differences beside their standard errors."""
    bar = f"; bar: {BARS[name]}" if name in BARS else ""
    print(f"\n{name}, mean over {len({r['seed'] for r in runs})} (lowest){bar}\n")
    print("| method | encoder | threads | " + " | ".join(COLUMNS) + " |")
    print("|---|---|---:|" + "---:|" * len(COLUMNS))
    for kind in sorted({_kind(r) for r in runs}, key=_place):
        own = [r for r in runs if _kind(r) == kind]
        cells = [_cell([r.get(column) for r in own], column) for column in COLUMNS]
        print(f"| {' | '.join(map(str, kind))} | {' | '.join(cells)} |")
    for encoder in sorted({r["encoder"] for r in runs}):
        own = [r["against"] for r in runs if r["method"] == "auto" and r["encoder"] == encoder]
        for other in ALONE if own else ():
            gain, error = (np.mean([r[other][what] for r in own]) for what in ("gain", "error"))
            words = f"posterior: auto {encoder} {gain:+.4f} against {other}"
            print(f"\n{words}, standard error {error:.4f}")


def _kind(run: dict[str, Any]) -> tuple[str, str, int]:
    return run["method"], run["encoder"], run["threads"]


def _place(kind: tuple[str, str, int]) -> tuple[int, str, int]:
    return METHODS.index(kind[0]), *kind[1:]


def _cell(values: list[Any], column: str) -> str:
    if None in values:
        return ""
    lowest = f" ({min(values):.3f})" if "accuracy" in column else ""
    return f"{np.mean(values):.1f}" if column == "seconds" else f"{np.mean(values):.4f}{lowest}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--encoder", help="a folder, or a name on the Hugging Face hub")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/texts.jsonl"))
    parser.add_argument("--show", type=Path, nargs="+")
    options = parser.parse_args()
    paths = options.show or [options.out]
    runs = [json.loads(line) for path in paths if path.exists() for line in path.open()]
    done = {(r["experiment"], r["seed"], *_kind(r)) for r in runs}
    encoder = "" if options.encoder is None else Path(options.encoder).name
    for name in [] if options.show else options.only.split(","):
        for seed, crowd in SETS[name](options.data, options.seeds):
            crowd = crowd.encode(options.encoder)
            for method in options.methods.split(","):
                if (name, seed, method, encoder, torch.get_num_threads()) not in done:
                    key = {"experiment": name, "encoder": encoder}
                    runs.append(key | run(method, seed, crowd))
                    with options.out.open("a") as file:
                        file.write(json.dumps(runs[-1]) + "\n")
    for name in dict.fromkeys(r["experiment"] for r in runs):
        show(name, [r for r in runs if r["experiment"] == name])


if __name__ == "__main__":
    main()
