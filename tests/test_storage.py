import os
import tracemalloc

import pytest
import torch
from safetensors.torch import load, save

from annotrace.errors import InputError, RunError
from annotrace.storage import (
    check_same_names,
    check_tensors,
    join_parts,
    pack_tensors,
    parse_json,
    parse_tensors,
    read_regular,
    select_part,
)


class TestReadRegular:
    def test_returns_the_content(self, tmp_path):
        (tmp_path / "a").write_bytes(b"\x00text")
        assert read_regular(tmp_path / "a", 5) == b"\x00text"

    def test_takes_memory_for_the_content_only(self, tmp_path):
        (tmp_path / "a").write_bytes(b"text")
        tracemalloc.start()
        try:
            read_regular(tmp_path / "a", 2**33)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 2**20

    def test_rejects_a_large_file(self, tmp_path):
        (tmp_path / "a").write_bytes(b"12345")
        with pytest.raises(RunError, match="5 bytes, more than 4"):
            read_regular(tmp_path / "a", 4)

    def test_rejects_links_pipes_devices_and_folders(self, tmp_path):
        (tmp_path / "file").write_bytes(b"text")
        (tmp_path / "link").symlink_to("file")
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        for name in ("link", "pipe", "folder", "/dev/zero", "absent"):
            with pytest.raises(RunError, match="regular file"):
                read_regular(tmp_path / name, 100)

    def test_calls_a_link_a_link(self, tmp_path):
        (tmp_path / "link").symlink_to("absent")
        with pytest.raises(RunError, match="is a link, not a regular file"):
            read_regular(tmp_path / "link", 100)


class TestPackTensors:
    def test_safetensors_reads_the_same(self):
        dtypes = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
        dtypes += [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64]
        tensors = {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in dtypes}
        tensors |= {"none": torch.zeros(0, 2), "scalar": torch.tensor(1.5), "\u00e9": torch.ones(1)}
        tensors["columns"] = torch.arange(6).reshape(2, 3).t()
        read = load(pack_tensors(tensors))
        assert read.keys() == tensors.keys()
        for name, tensor in tensors.items():
            assert torch.equal(read[name], tensor)
            assert read[name].dtype == tensor.dtype

    def test_metadata_and_shared_memory(self):
        weight = torch.nn.Parameter(torch.ones(3))
        content = pack_tensors({"a": weight, "b": weight}, {"note": "text"})
        tensors, metadata = parse_tensors(content, "model")
        assert tensors["a"].tolist() == tensors["b"].tolist() == [1, 1, 1]
        assert metadata == {"note": "text"}


class TestParseJson:
    def test_returns_the_value(self):
        assert parse_json(b'{"a": [1, -2.5e3, null]}', "run.json") == {"a": [1, -2500.0, None]}

    @pytest.mark.parametrize(
        "text",
        ["", "{", "[" * 100_000, "NaN", "[-Infinity]", "1e999", "9" * 5000, "9" * 41, b"\xff"],
    )
    def test_rejects_what_is_not_json(self, text):
        with pytest.raises(RunError, match=r"run\.json: damaged, it is not JSON"):
            parse_json(text, "run.json")


class TestParseTensors:
    def test_returns_tensors_and_metadata(self):
        content = save({"a": torch.arange(3)}, metadata={"note": "text"})
        tensors, metadata = parse_tensors(content, "model")
        assert tensors["a"].tolist() == [0, 1, 2]
        assert metadata == {"note": "text"}

    def test_rejects_damage(self):
        content = save({"a": torch.arange(3)})
        claims_much = (10**11).to_bytes(8, "little") + content[8:]
        for damaged in (b"", content[:20], content[:-1], claims_much, b"\x80\x04pickle"):
            with pytest.raises(RunError, match="damaged"):
                parse_tensors(damaged, "model")


def test_unknown_names_are_quoted_in_part():
    given = dict.fromkeys(["a", "\x1b[2J" * 100, "c", "d", "e"])
    with pytest.raises(InputError, match=r"unknown fields: '\\x1b\[2J") as raised:
        check_same_names(given, {"a": None})
    assert len(str(raised.value)) < 300


def test_parts_are_joined_and_selected():
    x, y = torch.zeros(1), torch.ones(2)
    joined = join_parts(a={"x": x}, ab={"x.y": y})
    assert joined.keys() == {"a.x", "ab.x.y"}
    assert select_part(joined, "ab") == {"x.y": y}


class TestCheckTensors:
    layer = torch.nn.BatchNorm1d(2)

    def change(self, **tensors):
        return {**self.layer.state_dict(), **tensors}

    def check(self, given):
        check_tensors(given, self.layer.state_dict(keep_vars=True))

    def test_accepts_the_same_and_infinite_buffers(self):
        self.check(self.layer.state_dict())
        self.check(self.change(running_var=torch.full((2,), torch.inf)))

    @pytest.mark.parametrize(
        ("tensor", "message"),
        [
            (torch.zeros(3), r"`weight` .* of shape \(2,\), but got torch.float32 of shape \(3,\)"),
            (torch.zeros(2).double(), "`weight` to be torch.float32 .* but got torch.float64"),
            (torch.tensor([0.0, torch.inf]), "`weight` to be finite"),
        ],
    )
    def test_rejects_others(self, tensor, message):
        with pytest.raises(InputError, match=message):
            self.check(self.change(weight=tensor))
        with pytest.raises(InputError, match="unknown fields: 'other'"):
            self.check(self.change(other=tensor))
