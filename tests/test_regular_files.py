import hashlib
import os

import pytest

from annotrace.errors import InputError
from annotrace.regular_files import digest_file, open_within


def test_a_file_is_opened_within_a_folder_only(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "folder" / "link").symlink_to("../secret")
    with pytest.raises(InputError, match="leads out of"):
        open_within(tmp_path / "folder" / "link", tmp_path / "folder")
    with open_within(tmp_path / "folder" / "link", None) as file:
        assert file.read() == b"x"


def test_the_digest_of_a_file_is_its_sha256(tmp_path):
    content = os.urandom(3_000_000)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        assert digest_file(file) == hashlib.sha256(content).digest()
