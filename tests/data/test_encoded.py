import json

import numpy as np
import pytest

from annotrace.data import ArraySource, EncodedSource, EncoderRecord, read_features
from annotrace.errors import InputError

X = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
RECORD = EncoderRecord("some/model", "text", "hub", "f" * 64, "c" * 40)


@pytest.mark.parametrize("items", [["a", "b"], [7, 8], None])
def test_features_come_back_with_their_encoder(tmp_path, items):
    EncodedSource(X, RECORD, items).write(tmp_path / "X.npz")
    source = read_features(tmp_path / "X.npz")
    assert isinstance(source, EncodedSource)
    assert source.encoder == RECORD
    assert (None if source.items is None else source.items.tolist()) == items
    assert source.X.dtype == np.float32
    np.testing.assert_array_equal(source.X, X)


def test_the_same_content_is_the_same_file(tmp_path):
    for name in ("one", "two"):
        EncodedSource(X.copy(), RECORD, ["a", "b"]).write(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_it_is_a_source_of_features():
    source = EncodedSource(X, RECORD)
    assert isinstance(source, ArraySource)
    assert repr(source) == "EncodedSource(2 items of shape (2,), text by some/model)"


@pytest.mark.parametrize(
    "record",
    [
        np.array("{"),
        np.array("[]"),
        np.array("{}"),
        np.array(json.dumps(RECORD.to_dict() | {"kind": "audio"})),
        np.array([json.dumps(RECORD.to_dict())]),
        np.array(7),
        np.array("[" * 5_000),
        np.array(json.dumps(RECORD.to_dict() | {"name": "x" * 20_000})),
    ],
)
def test_a_damaged_record_is_one_line(tmp_path, record):
    np.savez(tmp_path / "X.npz", X=X, encoder=record)
    with pytest.raises(InputError) as caught:
        read_features(tmp_path / "X.npz")
    assert str(tmp_path / "X.npz") in str(caught.value)
    assert "the array `encoder` is damaged" in str(caught.value)
    assert "\n" not in str(caught.value)
