"""`--text` in fit, predict, report and next: files, columns of the labels, and pairs."""

import csv
import json

import numpy as np
import polars as pl
import pytest

import annotrace as at

GOOD, BAD = ["lovely", "warm", "funny"], ["dull", "flat", "grim"]
EPOCHS = ("--method", "trace", "--no-recipe", "--epochs", 30, "--quiet")


def write(path, header, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@pytest.fixture
def texts(tmp_path):
    """Write labels.csv, texts.csv, export.csv (both) and pairs.csv; return the texts by item."""
    rng = np.random.default_rng(0)
    texts = {f"s{k}": " ".join(rng.choice([BAD, GOOD][k % 2], 3)) for k in range(40)}
    names = ["neg", "pos"]
    rows = [(f"s{k}", who, names[k % 2]) for k in range(40) for who in ("ann", "bob")]
    write(tmp_path / "labels.csv", ["item", "annotator", "label"], rows)
    write(tmp_path / "texts.csv", ["item", "text"], texts.items())
    header = ["item", "annotator", "label"]
    write(tmp_path / "export.csv", [*header, "sentence"], [(*r, texts[r[0]]) for r in rows])
    pairs = [(*r, "a film", texts[r[0]]) for r in rows]
    write(tmp_path / "pairs.csv", [*header, "premise", "hypothesis"], pairs)
    return texts


def test_a_file_of_texts_trains_and_new_texts_are_predicted(annotrace, texts, tmp_path):
    done = annotrace("fit", "labels.csv", "--text", "texts.csv", *EPOCHS, "--out", "run")
    assert done.exit_code == 0, done.output
    (tmp_path / "new.csv").write_text("text\nlovely funny warm\ngrim dull flat\n")
    done = annotrace("predict", "run", "--text", "new.csv", "--out", "p.csv")
    assert done.exit_code == 0, done.output
    assert pl.read_csv(tmp_path / "p.csv").select("item", "label").rows() == [
        (0, "pos"),
        (1, "neg"),
    ]
    assert at.load(tmp_path / "run").encoder_ is None


def test_a_column_of_the_labels_is_the_same_as_a_file(annotrace, texts, tmp_path):
    for labels, given, out in (("labels", "texts.csv", "a"), ("export", "sentence", "b")):
        done = annotrace("fit", f"{labels}.csv", "--text", given, *EPOCHS, "--out", out)
        assert done.exit_code == 0, done.output
    one, other = (pl.read_csv(tmp_path / run / "truth.csv") for run in "ab")
    assert one.equals(other)


@pytest.mark.parametrize(
    "given", [("--text", "premise", "--text", "hypothesis"), ("--text", "premise, hypothesis")]
)
def test_pairs_are_two_columns(annotrace, texts, tmp_path, given):
    done = annotrace("fit", "pairs.csv", *given, *EPOCHS, "--out", "run")
    assert done.exit_code == 0, done.output
    assert at.load(tmp_path / "run").input_shape_ == (2,)
    one = annotrace("predict", "run", "--text", "texts.csv", "--out", "p.csv")
    (line,) = one.stderr.splitlines()
    assert "Expected pairs of texts, as in `fit`, but got one text per item" in line


def test_texts_without_labels_are_predicted_on_request(annotrace, texts, tmp_path):
    with (tmp_path / "texts.csv").open("a") as file:
        file.write("new,lovely warm funny\n")
    fit = ("fit", "labels.csv", "--text", "texts.csv", *EPOCHS, "--out", "run")
    refused = annotrace(*fit)
    (line,) = refused.stderr.splitlines()
    assert "no item in labels.csv ('new')" in line
    assert "--keep-unlabelled" in line
    assert annotrace(*fit, "--keep-unlabelled").exit_code == 0
    truth = pl.read_csv(tmp_path / "run" / "truth.csv")
    assert truth.filter(pl.col("item") == "new")["label"].to_list() == ["pos"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("labels.csv", "--text", "none.csv"), "there is no such file, and no such column in lab"),
        (("export.csv", "--text", "no"), "no such column in export.csv; it has 'item', 'annot"),
        (("labels.csv", "--text", "fewer.csv"), "39 items of labels.csv have no features"),
        (("differ.csv", "--text", "sentence"), "differ.csv, row 3, column 'sentence': 'a' has"),
        (("export.csv", "--text", "sentence", "--text-column", "x"), "Repeat --text for pairs"),
        (("labels.csv", "--text-column", "text"), "a column of the file --text FILE"),
        (("labels.csv", "--text", "texts.csv", "--text", "b"), "can only be given alone"),
    ],
)
def test_wrong_texts(annotrace, texts, tmp_path, args, message):
    write(tmp_path / "fewer.csv", ["item", "text"], [("s0", "dull")])
    rows = [("a", "ann", "pos", "x"), ("a", "bob", "neg", "y")]
    write(tmp_path / "differ.csv", ["item", "annotator", "label", "sentence"], rows)
    done = annotrace("fit", *args, *EPOCHS, "--out", "run")
    assert done.exit_code == 2
    assert message in done.stderr.splitlines()[-1]
    assert not (tmp_path / "run").exists()


def test_a_name_of_a_file_and_of_a_column_is_ambiguous(annotrace, texts, tmp_path):
    (tmp_path / "sentence").write_text("item,text\ns0,dull\n")
    done = annotrace("fit", "export.csv", "--text", "sentence", *EPOCHS, "--out", "run")
    assert "there are a file and a column of this name. Write ./sentence" in done.stderr


def test_the_report_shows_texts_and_next_reads_the_run(annotrace, texts, tmp_path):
    rows = [
        (f"s{k}", who, "np"[k % 2] if who == "a" else "pn"[k % 2])
        for k in range(40)
        for who in "ab"
    ]
    write(tmp_path / "split.csv", ["item", "annotator", "label"], rows)
    assert annotrace("aggregate", "split.csv", "--out", "run").exit_code == 0
    done = annotrace("report", "run", "--text", "texts.csv", "--out", "r.html")
    assert done.exit_code == 0, done.output
    assert texts["s0"] in (tmp_path / "r.html").read_text()
    assert (
        annotrace("fit", "labels.csv", "--text", "texts.csv", *EPOCHS, "--out", "t").exit_code == 0
    )
    (tmp_path / "people.csv").write_text("annotator\nann\nbob\ncy\n")
    done = annotrace("next", "t", "--budget", 2, "--annotators", "people.csv", "--out", "n.csv")
    assert done.exit_code == 0, done.output
    assert len(pl.read_csv(tmp_path / "n.csv")) == 2


@pytest.fixture
def encoded(annotrace, texts, tmp_path, models, monkeypatch):
    """A run on texts with an encoder that lies in the folder `model`."""
    import shutil

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    shutil.copytree(models / "text", tmp_path / "model")
    done = annotrace(
        "fit", "labels.csv", "--text", "texts.csv", "--encoder", "model", *EPOCHS, "--out", "run"
    )
    assert done.exit_code == 0, done.output
    return tmp_path


def test_a_run_keeps_its_encoder_and_predicts_with_it(annotrace, encoded, texts):
    record = json.loads((encoded / "run" / "run.json").read_text())["encoder"]
    assert (record["kind"], record["origin"]) == ("text", "folder")
    model = at.load(encoded / "run")
    assert model.encoder_.to_dict() == record
    done = annotrace("predict", "run", "--text", "texts.csv", "--out", "p.csv")
    assert done.exit_code == 0, done.output
    X = at.data.encode(list(texts.values()), encoded / "model", cache=False)
    found = pl.read_csv(encoded / "p.csv").select("neg", "pos").to_numpy()
    np.testing.assert_allclose(found, model.predict_proba(X.X), atol=1e-4)


def test_a_moved_missing_or_changed_encoder(annotrace, encoded):
    (encoded / "model").rename(encoded / "moved")
    predict = ("predict", "run", "--text", "texts.csv", "--out", "p.csv")
    missing = annotrace(*predict)
    (line,) = missing.stderr.splitlines()
    assert missing.exit_code == 2
    assert "model" in line
    assert annotrace(*predict, "--encoder", "moved").exit_code == 0
    path = encoded / "moved" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "layer_norm_eps": 0.5}))
    changed = annotrace(*predict, "--encoder", "moved", "--overwrite")
    (line,) = changed.stderr.splitlines()
    assert "has changed: it is not the model that the features are from" in line


def test_a_run_without_encoder_takes_none(annotrace, run, texts):
    done = annotrace("predict", "run", "--text", "texts.csv", "--out", "p.csv")
    assert "was fitted on features; use --features instead of --text" in done.stderr
