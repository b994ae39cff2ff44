import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from annotrace.cli.main import main


@pytest.fixture
def annotrace(tmp_path, monkeypatch):
    """Return a function that runs a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        return CliRunner().invoke(main, [str(word) for word in args])

    return run


COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said", "--truth", "gold")
FIT = ("fit", "labels.csv", *COLUMNS, "--features", "features.npz", "--epochs", 40)


@pytest.fixture
def crowd(tmp_path):
    """Write labels.csv and features.npz: 90 items of three classes, easy to distinguish.

    Ann and Bob are always right; Cy says that every cat is a dog.
    """
    write_crowd(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The folder of `crowd` with a run in it, and what was printed; read only."""
    folder = tmp_path_factory.mktemp("trained")
    write_crowd(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = CliRunner().invoke(main, [str(word) for word in (*FIT, "--out", "run")])
    assert result.exit_code == 0, result.output
    return folder, result.stdout


@pytest.fixture
def run(trained, tmp_path):
    """A copy of the folder of `crowd` with a run in it."""
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    return tmp_path


def write_crowd(folder):
    rng = np.random.default_rng(0)
    names = np.array(["cat", "dog", "hen"])
    truth = np.arange(90) % 3
    X = 4 * np.eye(3)[truth] + rng.normal(size=(90, 3))
    items = np.array([f"photo-{k}" for k in range(90)])
    np.savez(folder / "features.npz", X=X.astype(np.float32), items=items)
    cy = np.where(truth == 0, 1, truth)
    rows = [
        f"{item},{who},{names[label[k]]},{names[truth[k]]}"
        for k, item in enumerate(items)
        for who, label in (("ann", truth), ("bob", truth), ("cy", cy))
    ]
    (folder / "labels.csv").write_text("\n".join(["photo,who,said,gold", *rows]) + "\n")
