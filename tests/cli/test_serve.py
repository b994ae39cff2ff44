"""`annotrace serve`, in a process of its own: address, warning, and a clean end."""

import re
import signal
import subprocess
import sys
import urllib.request

import pytest

import annotrace as at


@pytest.fixture
def run(tmp_path):
    labels = {"item": list("aabb"), "annotator": list("xyxy"), "label": list("0101")}
    at.aggregation.make("majority").fit(at.LabelTable.from_long(labels)).save(tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(run, stop):
    command = [sys.executable, "-u", "-m", "annotrace", "serve", str(run), "--anonymous"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        line = process.stdout.readline().decode()
        url = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", line)[0]
        with urllib.request.urlopen(f"{url}report", timeout=20) as answer:
            assert b"annotrace" in answer.read()
        process.send_signal(stop)
        said, errors = process.communicate(timeout=20)
    assert (process.returncode, said, errors) == (0, b"Stopped.\n", b"")


def test_a_folder_without_run_is_one_line(annotrace, tmp_path):
    done = annotrace("serve", tmp_path)
    assert done.exit_code == 2
    assert "no run here" in done.stderr
