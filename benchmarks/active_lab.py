"""The order of cleanlab's ActiveLab, in a virtual environment of its own.

Run inside that environment as ``python active_lab.py ROUND.npz``, where the file has the labels
(item, annotator, label) and ``pred_probs``; prints the score of each item, the lowest first to be
labelled, as one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any


def make_environment(folder: Path) -> Path:
    """Make the environment unless it is there, and give its interpreter."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "cleanlab"], check=True)
    return python


def active_lab_scores(python: Path, **arrays: Any) -> Any:
    """Give the score of each item by ActiveLab, shape (n_items,); the lowest is labelled first."""
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
