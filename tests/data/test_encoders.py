import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from annotrace.data import EncoderRecord, encode, encoder_from_record
from annotrace.data.encoders import FunctionEncoder, load_encoder
from annotrace.data.model_files import ModelFiles
from annotrace.errors import InputError

TEXTS = ["a good film", "the dog", "bad"]
RECORD = EncoderRecord("some/model", "text", "hub", "f" * 64, "c" * 40)


def lengths(texts):
    return [[len(text)] for text in texts]


def test_a_record_comes_back_from_its_fields():
    assert EncoderRecord.from_dict(RECORD.to_dict()) == RECORD


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "audio"},
        {"origin": "elsewhere"},
        {"name": 7},
        {"revision": 7},
        {"fingerprint": None},
        {"more": "x"},
    ],
)
def test_a_record_is_checked(change):
    with pytest.raises(InputError):
        EncoderRecord.from_dict(RECORD.to_dict() | change)
    with pytest.raises(InputError, match="not the record of an encoder"):
        EncoderRecord.from_dict({})


def test_a_function_is_identified_by_its_key_only():
    assert FunctionEncoder(lengths, "text").record == EncoderRecord(
        "lengths", "text", "function", ""
    )
    one = FunctionEncoder(lengths, "text", "1").record.fingerprint
    assert one == FunctionEncoder(lambda texts: texts, "text", "1").record.fingerprint
    others = [FunctionEncoder(lengths, "text", "2"), FunctionEncoder(lengths, "images", "1")]
    assert len({one, *(other.record.fingerprint for other in others)}) == 3


def test_an_object_may_carry_its_fingerprint():
    class Lengths:
        fingerprint, min_side = "1", 64

        def __call__(self, texts):
            return lengths(texts)

    encoder = FunctionEncoder(Lengths(), "text")
    assert encoder.record.name.endswith("Lengths")
    assert encoder.min_side == 64
    assert encoder.record.fingerprint != FunctionEncoder(lengths, "text", "1").record.fingerprint
    with pytest.raises(InputError, match=r"a name, a path or a function .* but got int"):
        FunctionEncoder(7, "text")


def test_a_model_is_found_by_its_record(models):
    encoded = encode(TEXTS, str(models / "text"), cache=False)
    record = EncoderRecord.from_dict(encoded.encoder.to_dict())
    assert (record.name, record.kind, record.origin) == (str(models / "text"), "text", "folder")
    again = encode(TEXTS[::-1], encoder_from_record(record, cache=False), cache=False)
    np.testing.assert_allclose(again.X[::-1], encoded.X, atol=1e-6)
    assert again.encoder == record


@pytest.fixture
def moved(models, tmp_path):
    return Path(shutil.copytree(models / "text", tmp_path / "moved"))


def test_a_model_may_have_moved(models, moved):
    record = load_encoder(models / "text", "text", cache=False).record
    found = encoder_from_record(record, moved, cache=False)
    assert found.record.fingerprint == record.fingerprint
    lost = EncoderRecord("nowhere/at/all", "text", "folder", record.fingerprint)
    with pytest.raises(InputError, match="nowhere/at/all: no such folder"):
        encoder_from_record(lost, cache=False)


def test_a_model_that_has_changed_is_refused(moved):
    record = load_encoder(moved, "text", cache=False).record
    (moved / "config.json").write_text((moved / "config.json").read_text() + " ")
    with pytest.raises(InputError, match=r"moved has changed: .*Restore the model, or encode all"):
        encoder_from_record(record, cache=False)


def test_a_model_of_the_hub_is_asked_for_by_its_commit(models, monkeypatch):
    asked = []

    def find(name, revision, *, verbose):
        asked.append((name, revision))
        return ModelFiles(name, models / "text", revision or "d" * 40)

    monkeypatch.setattr("annotrace.data.encoders.find_model", find)
    record = load_encoder("org/name", "text", cache=False).record
    assert (record.origin, record.revision) == ("hub", "d" * 40)
    assert encoder_from_record(record, cache=False).record == record
    assert asked == [("org/name", None), ("org/name", "d" * 40)]


def test_a_function_must_be_passed_again():
    record = FunctionEncoder(lengths, "text", "1").record
    with pytest.raises(InputError, match="from the function 'lengths', which is code and not sav"):
        encoder_from_record(record)
    lengths_1 = encoder_from_record(record, lengths)
    assert lengths_1(["abc"]) == [[3]]


def test_a_function_with_another_fingerprint_is_refused():
    class Lengths:
        def __init__(self, fingerprint):
            self.fingerprint = fingerprint

        def __call__(self, texts):
            return lengths(texts)

    record = FunctionEncoder(Lengths("1"), "text").record
    assert encoder_from_record(record, Lengths("1")).record == record
    with pytest.raises(InputError, match="has changed"):
        encoder_from_record(record, Lengths("2"))


def test_texts_and_images_of_one_model_are_cached_apart(models):
    kinds = ("text", "pairs", "images")
    text, pairs, images = (
        load_encoder(models / "clip", kind, cache=False).record.fingerprint for kind in kinds
    )
    assert text == pairs != images


def test_an_encoder_of_another_kind_is_refused(models):
    encoder = load_encoder(models / "text", "pairs", cache=False)
    with pytest.raises(InputError, match="is for items of kind 'pairs', but got 'text'"):
        encode(TEXTS, encoder, cache=False)


def test_a_device_that_is_not_there_is_refused(models):
    with pytest.raises(InputError, match="Expected `device`"):
        load_encoder(models / "text", "text", device="gpu", cache=False)


def test_too_little_memory_names_the_batch_size(models, monkeypatch):
    def fill(*_):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate ...")

    monkeypatch.setattr("annotrace.data.pretrained.TextModel.__call__", fill)
    with pytest.raises(InputError, match=r"does not fit into the memory of cpu.*--batch-size"):
        encode(TEXTS, models / "text", device="cpu", cache=False)
