"""Scores of items by cleanlab's ActiveLab, in a virtual environment of its own.

Run inside that environment as ``python active_lab.py ROUND.npz``, where the file has the labels
(item, annotator, label) and ``pred_probs``; prints the score of each item as one line of JSON.
Items with the lowest scores should be labelled first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import peers


def make_environment(folder: Path) -> Path:
    """Create the environment unless it exists, and return its interpreter."""
    return peers.make_environment(folder, ["cleanlab"])


def active_lab_scores(python: Path, **arrays: Any) -> Any:
    """Return the score of each item by ActiveLab, shape (n_items,)."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "round.npz"
        np.savez(path, **arrays)
        command = [str(python), __file__, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return np.array(json.loads(done.stdout.strip().splitlines()[-1]))


def _score(path: str) -> list[float]:
    import numpy as np
    import pandas as pd
    from cleanlab.multiannotator import get_active_learning_scores

    data = np.load(path)
    wide = np.full((len(data["pred_probs"]), data["annotator"].max() + 1), np.nan)
    wide[data["item"], data["annotator"]] = data["label"]
    scores, _ = get_active_learning_scores(pd.DataFrame(wide), data["pred_probs"])
    return scores.tolist()


if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore")
    print(json.dumps(_score(sys.argv[1])))
