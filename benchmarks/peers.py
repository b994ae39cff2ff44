"""Other libraries in virtual environments of their own, and crowd-kit in one of them.

crowd-kit pins no versions, and its Wawa fails with scikit-learn 1.6 and later, so the environment
has an older one. Its text and image methods are not installed, nor what they need.

Run inside that environment as ``python peers.py LABELS.npz METHOD``; prints one line of JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import venv
from pathlib import Path

PACKAGES = ["numpy<2.3", "pandas", "scipy<1.15", "scikit-learn<1.6", "tqdm", "nltk", "attrs"]
METHODS = {
    "majority": "MajorityVote",
    "wawa": "Wawa",
    "zero-based-skill": "ZeroBasedSkill",
    "dawid-skene": "DawidSkene",
    "one-coin": "OneCoinDawidSkene",
    "mmsr": "MMSR",
    "mace": "MACE",
    "glad": "GLAD",
}


def make_environment(folder: Path, *installs: list[str]) -> Path:
    """Create a virtual environment unless it exists, and return its interpreter.

    `installs` are arguments of `pip install`, by default those for crowd-kit.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        for arguments in installs or (PACKAGES, ["--no-deps", "crowd-kit"]):
            command = [str(python), "-m", "pip", "install", "--quiet", *arguments]
            try:
                subprocess.run(command, check=True)
            except BaseException:
                shutil.rmtree(folder)  # or the next call would take it for complete
                raise
    return python


def run_peer(python: Path, labels: Path, method: str, *, iterations: int | None = None) -> dict:
    """Run one method of crowd-kit on labels saved as npz, in its own process."""
    command = [str(python), __file__, str(labels), method]
    if iterations is not None:
        command.append(str(iterations))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def _aggregate(path: str, method: str, iterations: str | None) -> dict:
    import resource
    from importlib.metadata import version

    import numpy as np
    import pandas as pd
    from crowdkit import aggregation

    data = np.load(path)
    columns = {"task": data["item"], "worker": data["annotator"], "label": data["label"]}
    maker = getattr(aggregation, METHODS[method])
    model = maker(n_iter=int(iterations), tol=0.0) if iterations else maker()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    predicted = model.fit_predict(pd.DataFrame(columns))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    known = np.flatnonzero(data["truth"] >= 0)
    correct = predicted.reindex(known).to_numpy() == data["truth"][known]
    return {
        "accuracy": float(correct.mean()),
        "seconds": seconds,
        "megabytes": (peak - before) / 1024,
        "version": version("crowd-kit"),
    }


if __name__ == "__main__":
    import warnings

    warnings.filterwarnings("ignore")
    arguments = [*sys.argv[1:], None][:3]
    print(json.dumps(_aggregate(*arguments)))
