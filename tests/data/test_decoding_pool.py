import io
import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from annotrace.data import ImageFolder, decoding_pool
from annotrace.data.decoding import Rendering
from annotrace.data.decoding_pool import count_processes, decode_ahead
from annotrace.data.decoding_worker import serve
from annotrace.data.image_files import ImageFile
from annotrace.errors import InputError


@pytest.fixture
def files(tmp_path):
    for k in range(7):
        Image.new("RGB", (40, 30), (k, 2 * k, 3 * k)).save(tmp_path / f"{k}.png")
    return [ImageFile(str(tmp_path / f"{k}.png"), str(tmp_path)) for k in range(7)]


def children():
    """The processes that this one has started and that still run."""
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return set(map(int, listed.split()))


@pytest.mark.parametrize("n_workers", [0, 1, 2, 20])
def test_images_come_in_the_order_of_their_files(files, n_workers):
    images = list(decode_ahead(files, Rendering("RGB", (4, 3)), n_workers))
    assert [image.size for image in images] == [(4, 3)] * 7
    assert [image.getpixel((0, 0)) for image in images] == [(k, 2 * k, 3 * k) for k in range(7)]


@pytest.mark.parametrize("n_workers", [0, 2])
def test_a_broken_file_is_an_error_in_its_place(files, tmp_path, n_workers):
    (tmp_path / "3.png").write_bytes(b"broken")
    images = list(decode_ahead(files, Rendering(), n_workers))
    assert [isinstance(image, InputError) for image in images].index(True) == 3
    assert "3.png: the image cannot be read" in str(images[3])
    assert images[4].getpixel((0, 0)) == (4, 8, 12)


def test_few_images_are_decoded_ahead(files, monkeypatch):
    asked = []
    render = decoding_pool.DecodingWorker.render

    def record(self, file, rendering):
        asked.append(file)
        return render(self, file, rendering)

    monkeypatch.setattr(decoding_pool.DecodingWorker, "render", record)
    with closing(decode_ahead(files, Rendering(), 2)) as images:
        next(images)
        time.sleep(0.5)
        assert len(asked) <= 3


def test_closing_early_ends_the_processes(files):
    before = children()
    images = decode_ahead(files, Rendering(), 2)
    next(images)
    assert len(children() - before) == 2
    images.close()
    assert children() == before


def test_a_killed_process_is_one_error_that_names_the_file(files):
    before = children()
    images = decode_ahead(files, Rendering(), 1)
    next(images)
    for process in children() - before:
        os.kill(process, signal.SIGKILL)
    message = r"\d\.png: the process that decoded it ended \(exit status -9\).*--workers"
    with pytest.raises(InputError, match=message):
        list(images)
    assert children() == before


def test_small_folders_start_no_process(files, monkeypatch):
    monkeypatch.setattr(decoding_pool, "_n_cores", lambda: 4)
    assert count_processes(files, None) == 0
    monkeypatch.setattr(decoding_pool, "MIN_BYTES", 100)
    assert count_processes(files, None) == 4
    assert count_processes(files[:2], None) == 2
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert count_processes(files, None) == 0
    assert count_processes(files, 3) == 3


def test_whole_images_are_not_sent_by_default(files, monkeypatch):
    monkeypatch.setattr(decoding_pool, "_n_cores", lambda: 2)
    monkeypatch.setattr(decoding_pool, "MIN_BYTES", 100)
    for rendering, n_processes in ((Rendering(), 0), (Rendering(min_side=8), 2)):
        before = children()
        with closing(decode_ahead(files, rendering)) as images:
            next(images)
            assert len(children() - before) == n_processes


def test_no_process_can_be_started(files, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(InputError, match=r"No process could be started .*--workers 0"):
        list(decode_ahead(files, Rendering(), 2))


SCRIPT = """
import sys
from annotrace.data import ImageFolder

decoded = ImageFolder(sys.argv[1], n_workers=2).decoded()
print(len(decoded), decoded.X.sum())
"""


def test_a_script_without_a_main_guard_and_a_daemon_process(files, tmp_path):
    expected = f"7 {ImageFolder(tmp_path).decoded().X.sum()}"
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "daemon.py").write_text(
        "import multiprocessing, runpy, sys\n"
        "if __name__ == '__main__':\n"
        "    run = multiprocessing.get_context('spawn').Process\n"
        f"    process = run(target=runpy.run_path, args=({str(tmp_path / 'script.py')!r},),"
        " daemon=True)\n"
        "    process.start()\n    process.join()\n"
    )
    for name in ("script.py", "daemon.py"):
        command = [sys.executable, tmp_path / name, tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert (done.stdout.strip(), done.stderr) == (expected, "")


def test_a_file_in_the_current_folder_is_not_imported(files, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    assert len(list(decode_ahead(files, Rendering(), 1))) == 7


def test_ctrl_c_ends_everything(tmp_path):
    rng = np.random.default_rng(0)
    for k in range(60):
        noise = rng.integers(0, 256, (600, 600, 3), dtype=np.uint8)
        Image.fromarray(noise).save(tmp_path / f"{k}.png")
    code = (
        "import sys\nfrom annotrace.data import ImageFolder\n"
        "folder = ImageFolder(sys.argv[1], n_workers=2)\nprint('ready', flush=True)\n"
        "while True:\n    folder.decoded()\n"
    )
    command = [sys.executable, "-c", code, tmp_path]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    process.stdout.readline()
    time.sleep(0.7)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert errors.count(b"Traceback") == 1
    assert errors.rstrip().endswith(b"KeyboardInterrupt")


def test_a_worker_ends_with_its_input_and_imports_no_torch():
    code = (
        "import sys\nfrom annotrace.data.decoding_worker import serve\n"
        "serve(sys.stdin.buffer, sys.stdout.buffer)\nprint('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"", capture_output=True, check=True)
    assert done.stdout == b"False\n"


def test_a_missing_decoder_is_raised_by_processes_too(tmp_path, monkeypatch):
    start = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"
    (tmp_path / "x.heic").write_bytes(start + bytes(50))
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    answers = io.BytesIO()
    request = b'{"file": {"path": "%s"}, "rendering": {}}\n' % os.fsencode(tmp_path / "x.heic")
    serve(io.BytesIO(request), answers)
    assert answers.getvalue().startswith(b'{"missing": ')
