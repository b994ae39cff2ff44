import subprocess

import peers
import pytest


def test_a_failed_installation_leaves_no_environment_behind(tmp_path, monkeypatch):
    def create(folder, *, with_pip):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()

    def fail(command, *, check):
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(peers.venv, "create", create)
    monkeypatch.setattr(peers.subprocess, "run", fail)
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            peers.make_environment(tmp_path / "peer", ["nothing"])
    assert list(tmp_path.iterdir()) == []
