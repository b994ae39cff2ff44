"""Files in blocks give the table, and the errors, of files that are read as a whole."""

import numpy as np
import polars as pl
import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable, parquet_columns, reading, record_blocks
from annotrace.labels.record_blocks import record_blocks as blocks_of

ROWS = 3000


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    item = rng.permutation(np.repeat(np.arange(ROWS // 5), 5))
    return pl.DataFrame(
        {
            "item": [f"item {k}" for k in item],
            "annotator": rng.integers(0, 20, ROWS),
            "label": [
                f"class, {k}" if k else 'a "quoted"\nlabel' for k in rng.integers(0, 4, ROWS)
            ],
            "time": rng.random(ROWS).astype(str),
        }
    )


@pytest.fixture
def in_blocks(monkeypatch):
    """Read in many blocks, whatever the size."""

    def set_sizes(n_bytes=4096):
        monkeypatch.setattr(reading, "LARGE", 0)
        monkeypatch.setattr(record_blocks, "BLOCK_BYTES", n_bytes)
        monkeypatch.setattr(parquet_columns, "PART_ROWS", 700)

    return set_sizes


WRITERS = {
    "labels.csv": lambda frame, path: frame.write_csv(path),
    "bom.csv": lambda frame, path: frame.write_csv(path, include_bom=True),
    "labels.tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "labels.jsonl": lambda frame, path: frame.write_ndjson(path),
    "labels.parquet": lambda frame, path: frame.write_parquet(path, row_group_size=500),
}


@pytest.mark.parametrize("name", WRITERS)
def test_blocks_give_the_table_of_the_whole_file(name, frame, tmp_path, in_blocks):
    path = tmp_path / name
    WRITERS[name](frame, path)
    whole = LabelTable.read(path)
    in_blocks()
    assert LabelTable.read(path) == whole
    assert whole.n_labels == ROWS


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("blocks", [True, False])
def test_several_files_give_the_table_of_one(name, frame, tmp_path, blocks, in_blocks):
    WRITERS[name](frame, tmp_path / name)
    whole = LabelTable.read(tmp_path / name)
    for part in range(3):
        rows = frame.slice(1000 * part, 1000)
        WRITERS[name](
            rows if part else rows.select(rows.columns[::-1]), tmp_path / f"{part}_{name}"
        )
    if blocks:
        in_blocks()
    assert LabelTable.read(tmp_path / f"?_{name}") == whole
    assert LabelTable.read([tmp_path / f"{part}_{name}" for part in range(3)]) == whole


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("x,y", r"row 3002: expected 4 fields as in the header, but got 2"),
        ("x,y,z,t,u", r"row 3002: expected 4 fields as in the header, but got 5"),
        ("x,,z,t", r"row 3002, column 'annotator' is empty"),
        ('x,"y,z,t', r"unexpected end of data|row \d+"),
    ],
)
def test_a_damaged_row_is_named_in_any_block(row, message, frame, tmp_path, in_blocks):
    path = tmp_path / "labels.csv"
    frame.with_columns(label=pl.col("label").str.replace("\n", " ")).write_csv(path)
    path.write_text(path.read_text() + row + "\n")
    in_blocks()
    with pytest.raises(InputError, match=message):
        LabelTable.read(path)


def test_a_row_without_its_last_cell_is_read_as_the_csv_module_does(tmp_path, in_blocks):
    lines = [f'"{k}, x",{k % 3},{k % 2},' for k in range(900)]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(["item,worker,label,truth", *lines]))
    in_blocks(1000)
    assert LabelTable.read(path).n_labels == 900


def test_numbers_in_json_lines_stay_as_written(tmp_path, in_blocks):
    path = tmp_path / "labels.jsonl"
    line = '{{"item": {}, "annotator": "a{}", "label": {}}}\n'
    path.write_text("".join(line.format(k, k % 3, ["1.0", "1e1"][k % 2]) for k in range(500)))
    in_blocks()
    table = LabelTable.read(path, classes=["1.0", "1e1"])
    assert table.n_labels == 500


def test_the_line_of_an_empty_field_is_named(frame, tmp_path, in_blocks):
    path = tmp_path / "labels.jsonl"
    frame.write_ndjson(path)
    path.write_text("\n" + path.read_text() + '{"item":"","annotator":1,"label":"x","time":""}')
    in_blocks()
    with pytest.raises(InputError, match=r"line 3002: field 'item' is empty"):
        LabelTable.read(path)


def test_blocks_end_outside_of_quotes(tmp_path, in_blocks):
    in_blocks(50)
    path = tmp_path / "labels.csv"
    text = "".join(f'{k},"a\nb ""{k}"""\n' for k in range(40))
    path.write_text(text)
    found = list(blocks_of(path, quoted=True))
    assert len(found) > 5
    assert b"".join(found).decode() == text
    assert all(block.count(b'"') % 4 == 2 or block.count(b'"') % 2 == 0 for block in found)
    assert all(block.decode().rstrip().endswith('"') for block in found)
    path.write_text('"' + "a\n" * 100)
    with pytest.raises(ValueError, match="longer than a block"):
        list(blocks_of(path, quoted=True))


def corrupt(path):
    content = bytearray(path.read_bytes())
    content[100:-200] = b"\xff" * len(content[100:-200])
    path.write_bytes(content)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-30])


BROKEN = {
    "a corrupt page": ("labels.parquet", corrupt, "is a damaged parquet file .* Copy or export"),
    "cut parquet": ("labels.parquet", truncate, "is a damaged parquet file .* Copy or export"),
    "cut csv": (
        "labels.csv",
        truncate,
        r"row \d+: expected 4 fields .* but got 3 .* Add or remove",
    ),
    "an empty file": (
        "labels.csv",
        lambda path: path.write_bytes(b""),
        "is empty. .* leave it out",
    ),
    "a header only": (
        "labels.csv",
        lambda path: path.write_text("item,annotator,label,time\n"),
        "no rows below it. .* leave it out",
    ),
    "no rows": (
        "labels.parquet",
        lambda path: pl.read_parquet(path).clear().write_parquet(path),
        "has no rows. .* leave it out",
    ),
    "another column": (
        "labels.parquet",
        lambda path: pl.read_parquet(path).rename({"time": "date"}).write_parquet(path),
        r"have different columns \('date', 'time' .* give them the same columns",
    ),
}


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize("kind", BROKEN)
def test_one_broken_file_of_a_folder_is_named_with_the_remedy(
    kind, blocks, frame, tmp_path, in_blocks
):
    name, damage, message = BROKEN[kind]
    for folder in "abc":
        (tmp_path / folder).mkdir()
        WRITERS[name](frame, tmp_path / folder / name)
    damage(tmp_path / "b" / name)
    if blocks:
        in_blocks()
    broken = str(tmp_path / "b" / name)
    for paths in (tmp_path, f"{tmp_path}/*/*"):
        with pytest.raises(InputError, match=rf"(?s)^{broken}\b.*{message}") as raised:
            LabelTable.read(paths)
        assert "\n" not in str(raised.value)


def test_a_pattern_without_files_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"\*.csv: no file matches this pattern"):
        LabelTable.read(tmp_path / "*.csv")
    (tmp_path / "a[1].csv").write_text("item,annotator,label\n1,a,x\n1,b,y\n")
    assert LabelTable.read(tmp_path / "a[1].csv").n_labels == 2
