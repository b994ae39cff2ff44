"""A process that decodes images: requests on standard input, pixels on standard output.

A request is a line of JSON with an `ImageFile` and a `Rendering`. The answer is a line of JSON,
followed by the pixels unless the image cannot be read. The process ends at the end of its input,
and so with the process that started it, however that ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import IO, Any

from annotrace.data.decoding import Rendering, render_image
from annotrace.data.image_files import ImageFile
from annotrace.data.image_formats import MissingDecoderError
from annotrace.errors import InputError

# Isolated (-I): nothing is imported from the current folder, and all else as in this process.
_START = (
    "import json, sys\n"
    "sys.path[:] = json.loads(sys.stdin.buffer.readline())\n"
    "from annotrace.data.decoding_worker import serve\n"
    "serve(sys.stdin.buffer, sys.stdout.buffer)"
)


_PIPE_BYTES = 2**20


class DecodingWorker:
    """Another process that decodes one image at a time, without importing torch.

    It is Python with a command of its own, not a process of `multiprocessing`: those import the
    user's script again, which fails if it has no ``if __name__ == "__main__"``, and cannot be
    started by a process that is one of them.
    """

    def __init__(self) -> None:
        # In a session of its own, Ctrl-C reaches this process alone, which then ends the other.
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _widen(self.process.stdout)
        self._send(sys.path)

    def render(self, file: ImageFile, rendering: Rendering) -> Any:
        """Decode an image as `render_image` does; return the error if the file is broken.

        Raises
        ------
        InputError
            If the process has ended, or has no decoder for the format.
        """
        from PIL import Image

        self._send({"file": asdict(file), "rendering": asdict(rendering)})
        answer = self._receive(file)
        if "missing" in answer:
            raise MissingDecoderError(answer["missing"])
        if "error" in answer:
            return InputError(answer["error"])
        pixels = self._read(answer["n_bytes"], file)
        mode, size = answer["mode"], tuple(answer["size"])
        return Image.frombuffer(mode, size, pixels, "raw", mode, 0, 1)

    def end(self) -> None:
        """End the process, whatever it does; who waits for an answer gets an error."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Close the pipes to a process that has ended."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(OSError):  # A request that was not sent.
                pipe.close()

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):  # It has ended, which shows when the answer is missing.
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def _receive(self, file: ImageFile) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._ended(file)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _read(self, n_bytes: int, file: ImageFile) -> bytes:
        assert self.process.stdout is not None
        content = self.process.stdout.read(n_bytes)
        if len(content) < n_bytes:
            raise self._ended(file)
        return content

    def _ended(self, file: ImageFile) -> InputError:
        return InputError(
            f"{file}: the process that decoded it ended (exit status {self.process.wait()}), as "
            "when memory does not suffice or it is killed. Use fewer processes with n_workers= "
            "(--workers), 0 for none, or remove the image."
        )


def _widen(pipe: Any) -> None:
    """Enlarge a pipe to a megabyte where the system can: whole photos pass twice as fast."""
    with suppress(ImportError, AttributeError, OSError):
        from fcntl import F_SETPIPE_SZ, fcntl

        fcntl(pipe.fileno(), F_SETPIPE_SZ, _PIPE_BYTES)


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer requests until there are no more."""
    for line in requests:
        request = json.loads(line)
        answer, pixels = _answer(request)
        try:
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.write(pixels)
            answers.flush()
        except OSError:  # Nobody waits for the answer.
            os._exit(0)


def _answer(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    try:
        image = render_image(ImageFile(**request["file"]), Rendering(**request["rendering"]))
    except MissingDecoderError as error:
        return {"missing": str(error)}, b""
    except InputError as error:
        return {"error": str(error)}, b""
    pixels = image.tobytes()
    return {"mode": image.mode, "size": image.size, "n_bytes": len(pixels)}, pixels
