import numpy as np
import pytest
from click.testing import CliRunner

from annotrace.cli.main import main


@pytest.fixture
def annotrace(tmp_path, monkeypatch):
    """Run a command in an empty folder, and give its exit code and what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(main, [str(word) for word in words])

    return run


@pytest.fixture
def crowd(tmp_path):
    """Write labels.csv and features.npz: 90 items of three classes, easy to tell apart.

    Ann and Bob are always right; Cy says that every cat is a dog.
    """
    rng = np.random.default_rng(0)
    names = np.array(["cat", "dog", "hen"])
    truth = np.arange(90) % 3
    X = 4 * np.eye(3)[truth] + rng.normal(size=(90, 3))
    items = np.array([f"photo-{k}" for k in range(90)])
    np.savez(tmp_path / "features.npz", X=X.astype(np.float32), items=items)
    cy = np.where(truth == 0, 1, truth)
    rows = [
        f"{item},{who},{names[said[k]]},{names[truth[k]]}"
        for k, item in enumerate(items)
        for who, said in (("ann", truth), ("bob", truth), ("cy", cy))
    ]
    (tmp_path / "labels.csv").write_text("\n".join(["photo,who,said,gold", *rows]) + "\n")
    return tmp_path
