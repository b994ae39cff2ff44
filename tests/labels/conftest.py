import pytest

from annotrace.labels import LabelTable


@pytest.fixture
def read(tmp_path):
    """Write content to a file of some name and read it as labels."""

    def read(content, name="labels.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return LabelTable.read(path, **options)

    return read
