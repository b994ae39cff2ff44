import json
import tarfile

import numpy as np
import polars as pl
import pytest
from PIL import Image

import annotrace as at
from annotrace import list_methods

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said", "--truth", "gold")
FIT = ("fit", "labels.csv", *COLUMNS, "--features", "features.npz", "--epochs", 40)
# For tests that do not depend on what is learned.
QUICK = (*FIT, "--method", "vanilla")


def error_of(result):
    """Return the one line on standard error, and check that the exit code is that of bad input."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ")


def test_a_run_holds_the_truth_and_the_annotators(trained):
    folder, output = trained
    assert "90 items, 3 annotators, 270 labels, 3 classes ('cat', 'dog', 'hen')" in output
    assert "item 'photo', annotator 'who', label 'said', truth 'gold'" in output
    assert "annotrace predict run --features" in output
    truth = pl.read_csv(folder / "run" / "truth.csv")
    assert truth.columns == ["item", "label", "confidence", "cat", "dog", "hen"]
    assert truth["label"].to_list() == ["cat", "dog", "hen"] * 30
    annotators = pl.read_csv(folder / "run" / "annotators.csv")
    skill = dict(annotators.select("annotator", "skill").rows())
    assert skill["cy"] < 0.75 < 0.9 < min(skill["ann"], skill["bob"])
    assert not (folder / "run" / "checkpoint.bin").exists()


def test_accuracy_is_reported_beside_majority_vote(trained):
    rows = [line.split() for line in trained[1].splitlines()]
    assert ["auto", "1.000", "1.000"] in rows
    assert ["majority", "vote", "1.000", "1.000"] in rows
    assert ["hen", "30", "1.000", "1.000"] in rows


def test_what_was_learned_from_is_no_score(annotrace, crowd):
    output = annotrace(*QUICK, "--learn-truth", "--out", "run").stdout
    assert "truth 'gold' (for training, not for evaluation)" in output
    assert "No accuracy: all items of known truth were used for training." in output
    assert "Accuracy on" not in output
    report = (crowd / "run" / "report.html").read_text(encoding="utf-8")
    assert "of known truth" not in report


def test_quiet_prints_nothing(annotrace, crowd):
    result = annotrace(*QUICK, "--out", "run", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_the_method_is_kept_in_the_run(annotrace, crowd):
    assert annotrace(*QUICK, "--out", "run").exit_code == 0
    assert json.loads((crowd / "run" / "run.json").read_text())["method"] == "vanilla"


def test_help_names_every_method(annotrace):
    # A line may end at the hyphen of a name.
    output = "".join(annotrace("fit", "--help").output.split())
    names = [entry.name for entry in list_methods()]
    assert f"{','.join(names[:-1])}or{names[-1]}." in output


@pytest.mark.parametrize(("word", "recipe"), [("--recipe", "default"), ("--no-recipe", "none")])
def test_the_recipe_and_the_structure_can_be_chosen(annotrace, crowd, word, recipe):
    args = (*FIT[:-2], "--epochs", 2, "--method", "trace", word, "--structure", "pooled")
    result = annotrace(*args, "--no-report", "--out", "run")
    assert result.exit_code == 0, result.output
    params = json.loads((crowd / "run" / "run.json").read_text())["params"]
    assert (params["recipe"], params["structure"]) == (recipe, "pooled")


def test_the_groups_of_classes_can_be_given(annotrace, crowd):
    (crowd / "tree.json").write_text(json.dumps({"cat": "mammal", "dog": "mammal", "hen": "bird"}))
    args = (*FIT[:-2], "--epochs", 2, "--method", "trace", "--structure", "taxonomy")
    result = annotrace(*args, "--taxonomy", "tree.json", "--no-report", "--out", "run")
    assert result.exit_code == 0, result.output
    assert at.load(crowd / "run").groups_.tolist() == [0, 0, 1]


@pytest.mark.parametrize(("word", "effort"), [("fast", "fast"), ("0.01", 0.01)])
def test_the_effort_can_be_chosen(annotrace, crowd, word, effort):
    args = (*FIT[:-2], "--epochs", 1, "--no-report", "--quiet", "--out", "run")
    result = annotrace(*args, "--effort", word)
    assert result.exit_code == 0, result.output
    params = json.loads((crowd / "run" / "run.json").read_text())["params"]
    assert params["effort"] == effort


def test_one_network_can_be_distilled_and_predicts(annotrace, crowd):
    args = (*FIT[:-2], "--epochs", 15, "--effort", "fast", "--no-report", "--quiet")
    for out, options in (("whole", ()), ("one", ("--distill",))):
        assert annotrace(*args, *options, "--out", out).exit_code == 0
    result = annotrace("predict", "one", "--features", "features.npz", "--out", "new.csv")
    assert result.exit_code == 0, result.output
    right = pl.read_csv("new.csv")["label"] == pl.Series(["cat", "dog", "hen"] * 30)
    assert right.mean() >= 0.95
    sizes = [(crowd / out / "model.safetensors").stat().st_size for out in ("one", "whole")]
    assert sizes[0] < 0.6 * sizes[1]


@pytest.mark.parametrize("word", ["slow", "0", "-3", "nan", "inf"])
def test_an_effort_is_a_word_or_seconds(annotrace, crowd, word):
    result = annotrace(*FIT, "--effort", word, "--out", "out")
    expected = f"Expected fast, default, thorough or a number of seconds, but got '{word}'."
    assert result.exit_code == 2
    assert expected in result.stderr


def test_epochs_bound_every_training_of_the_default(annotrace, crowd):
    args = (*FIT[:-2], "--epochs", 2, "--no-report", "--quiet", "--out", "run")
    assert annotrace(*args).exit_code == 0
    history = json.loads((crowd / "run" / "run.json").read_text())["history"]
    # The initial model, a first iteration of twice as many epochs, and four more.
    assert len(history) <= 2 + 4 + 4 * 2


def test_the_oracle_is_given_the_matrices_by_name(annotrace, crowd):
    oracle = (*FIT, "--method", "oracle", "--out", "run")
    assert "--confusion FILE" in error_of(annotrace(*oracle))
    true = np.stack([np.eye(3), np.eye(3), np.eye(3)[[1, 1, 2]]])
    # Another order of annotators (cy, ann, bob) and classes (hen, cat, dog) than the labels have.
    stored = true[[2, 0, 1]][:, [2, 0, 1]][:, :, [2, 0, 1]]
    names = {
        "annotators": np.array(["cy", "ann", "bob"]),
        "classes": np.array(["hen", "cat", "dog"]),
    }
    np.savez(crowd / "true.npz", confusion=stored, **names)
    np.savez(crowd / "other.npz", confusion=stored, **names | {"annotators": ["cy", "ann", "al"]})
    message = "Expected the annotators of the labels to be among 'cy', 'ann', 'al', but got 1 other"
    assert message in error_of(annotrace(*oracle, "--confusion", "other.npz"))
    np.savez(crowd / "bare.npz", confusion=stored)
    message = "bare.npz must have the arrays confusion, annotators and classes."
    assert error_of(annotrace(*oracle, "--confusion", "bare.npz")) == message
    result = annotrace(*oracle, "--confusion", "true.npz")
    assert result.exit_code == 0, result.output
    with np.load(crowd / "run" / "confusion.npz") as saved:
        assert np.allclose(saved["confusion"], true, atol=1e-4)


def test_answers_that_mean_nothing_are_skipped(annotrace, crowd):
    result = annotrace(*QUICK, "--skip", "hen", "--out", "run")
    assert "180 labels, 2 classes" in result.stdout


def test_classes_in_the_order_wanted(annotrace, crowd):
    given = [word for name in ("hen", "dog", "cat") for word in ("--class", name)]
    assert annotrace(*QUICK, *given, "--out", "run").exit_code == 0
    assert pl.read_csv(crowd / "run" / "truth.csv").columns[3:] == ["hen", "dog", "cat"]


def test_unlabelled_items_are_kept_when_asked_for(annotrace, crowd):
    lines = (crowd / "labels.csv").read_text().splitlines(keepends=True)
    (crowd / "labels.csv").write_text("".join(lines[:-3]))
    assert "1 row of features has no item in labels.csv ('photo-89')" in error_of(
        annotrace(*FIT, "--out", "run")
    )
    assert not (crowd / "run").exists()
    assert annotrace(*QUICK, "--keep-unlabelled", "--out", "run").exit_code == 0
    truth = pl.read_csv(crowd / "run" / "truth.csv")
    assert truth.filter(item="photo-89")["label"].to_list() == ["hen"]


def test_unlabelled_rows_without_names_cannot_be_matched(annotrace, crowd):
    with np.load(crowd / "features.npz") as arrays:
        np.save(crowd / "bare.npy", arrays["X"])
    unnamed = ("--features", "bare.npy", "--keep-unlabelled", "--out", "run")
    message = "--keep-unlabelled matches items by name: it needs features with names"
    assert message in error_of(annotrace(*QUICK, *unnamed))


def test_images_are_learned_and_predicted_at_the_size_of_the_run(annotrace, crowd):
    (crowd / "photos").mkdir()
    for k in range(12):
        Image.new("RGB", (9, 7), (255 * (k % 2), 0, 0)).save(crowd / "photos" / f"{k}.png")
    rows = [f"{k},{who},{'red' if k % 2 else 'black'}" for k in range(12) for who in "ab"]
    (crowd / "colours.csv").write_text("\n".join(["image,worker,answer", *rows]))
    fit = ("fit", "colours.csv", "--images", "photos", "--image-size", 8, "--epochs", 15)
    assert annotrace(*fit, "--method", "vanilla", "--out", "run").exit_code == 0
    result = annotrace("predict", "run", "--images", "photos", "--out", "p.csv")
    assert result.exit_code == 0, result.output
    predicted = dict(pl.read_csv(crowd / "p.csv").select("item", "label").rows())
    assert predicted == {k: "red" if k % 2 else "black" for k in range(12)}
    (crowd / "photos").rename(crowd / "more")
    for k in range(12):
        (crowd / "more" / f"{k}.png").rename(crowd / "more" / f"new-{k}.png")
    assert annotrace("predict", "run", "--images", "more", "--out", "new.csv").exit_code == 0
    assert set(pl.read_csv(crowd / "new.csv")["item"]) == {f"new-{k}.png" for k in range(12)}


@pytest.fixture
def colours(crowd):
    """Write colours.csv and photos/: twelve images of two colours, of which 3.png is broken."""
    (crowd / "photos").mkdir()
    for k in range(12):
        Image.new("RGB", (9, 7), (255 * (k % 2), 0, 0)).save(crowd / "photos" / f"{k}.png")
    (crowd / "photos" / "3.png").write_bytes(b"broken")
    rows = [f"{k},{who},{'red' if k % 2 else 'black'}" for k in range(12) for who in "ab"]
    (crowd / "colours.csv").write_text("\n".join(["image,worker,answer", *rows]))
    return crowd


FIT_COLOURS = ("fit", "colours.csv", "--image-size", 8, "--epochs", 2, "--method", "vanilla")


def test_a_broken_image_is_skipped_on_request(annotrace, colours):
    fit = (*FIT_COLOURS, "--images", "photos", "--out", "run")
    message = error_of(annotrace(*fit))
    assert "3.png: the image cannot be read" in message
    assert "--skip-broken" in message
    done = annotrace(*fit, "--skip-broken")
    assert done.exit_code == 0, done.output
    assert "1 image of photos cannot be read and is skipped ('3')" in done.stderr
    assert "Warning: Left out 2 labels of 1 item without a readable image." in done.stderr
    assert sorted(pl.read_csv(colours / "run" / "truth.csv")["item"]) == [0, 1, 2, *range(4, 12)]
    predict = ("predict", "run", "--images", "photos", "--out", "p.csv")
    assert "3.png" in error_of(annotrace(*predict))
    assert annotrace(*predict, "--skip-broken").exit_code == 0
    assert len(pl.read_csv(colours / "p.csv")) == 11


def test_images_in_tar_files(annotrace, colours):
    Image.new("RGB", (9, 7), (255, 0, 0)).save(colours / "photos" / "3.png")
    (colours / "shards").mkdir()
    for shard in range(3):
        with tarfile.open(colours / "shards" / f"x-{shard}.tar", "w") as archive:
            for k in range(4 * shard, 4 * shard + 4):
                archive.add(colours / "photos" / f"{k}.png", f"{k}.png")
    runs = {}
    for name, given in (("a", "photos"), ("b", "shards"), ("c", "shards/x-{0..2}.tar")):
        done = annotrace(*FIT_COLOURS, "--images", given, "--workers", 1, "--out", name)
        assert done.exit_code == 0, done.output
        rows = pl.read_csv(colours / name / "truth.csv").sort("item")
        runs[name] = rows.to_dicts()
    assert runs["a"] == runs["b"] == runs["c"]


def test_the_item_column_of_features_is_the_one_named(annotrace, run):
    with np.load(run / "features.npz") as saved:
        frame = pl.DataFrame({"photo": saved["items"].tolist(), "x": saved["X"]})
    frame.write_parquet(run / "features.parquet")
    result = annotrace(*QUICK, "--features", "features.parquet", "--out", "other")
    assert result.exit_code == 0, result.output
    args = ("--features", "features.parquet", "--item", "photo", "--out", "p.csv")
    result = annotrace("predict", "run", *args)
    assert result.exit_code == 0, result.output
    assert pl.read_csv(run / "p.csv")["item"].to_list() == frame["photo"].to_list()


def test_an_existing_run_is_not_overwritten_without_the_option(annotrace, run):
    before = (run / "run" / "run.json").read_bytes()
    assert "run already has truth.csv" in error_of(annotrace(*QUICK, "--out", "run"))
    assert (run / "run" / "run.json").read_bytes() == before
    assert annotrace(*QUICK, "--out", "run", "--overwrite").exit_code == 0
    assert (run / "run" / "run.json").read_bytes() != before


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("fit", "none.csv", "--features", "features.npz"), "none.csv: no such file."),
        ((*FIT, "--features", "none.npz"), "none.npz: no such file."),
        ((*FIT, "--item", "pic"), "labels.csv has no column 'pic'; it has 'photo', 'who'"),
        ((*FIT, "--class", "cat", "--class", "dog"), "'hen'"),
        (
            (*FIT, "--method", "magic"),
            "There is no method 'magic'; there are auto, crossfit,",
        ),
        ((*FIT, "--no-recipe"), "--recipe does not apply to --method auto, only to trace,"),
        ((*FIT, "--structure", "full"), "--structure does not apply to --method auto, only to"),
        ((*QUICK, "--effort", "fast"), "--effort does not apply to --method vanilla, only to"),
        ((*QUICK, "--distill"), "--distill does not apply to --method vanilla, only to auto, cro"),
        ((*FIT, "--confusion", "c.npz"), "--confusion is for --method oracle; auto learns"),
        ((*FIT, "--backbone", "vgg"), "'auto' or one of linear, mlp"),
        (
            (*FIT, "--epochs", 0),
            "`epochs` to be a whole number larger than 0 or None, but got 0.",
        ),
        ((*FIT, "--device", "toaster"), "but got 'toaster'."),
        ((*FIT, "--resume"), "There is no out/checkpoint.bin to resume from"),
        ((*FIT[:-4], "--images", "none"), "none: no such folder."),
        (("fit", "features.npz", "--features", "features.npz"), "features.npz"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(annotrace, crowd, args, message):
    assert message in error_of(annotrace(*args, "--out", "out"))
    assert not (crowd / "out").exists()


def test_not_a_number_is_named_with_its_place(annotrace, crowd):
    with np.load(crowd / "features.npz") as saved:
        arrays = dict(saved)
    arrays["X"][4, 1] = np.nan
    np.savez(crowd / "features.npz", **arrays)
    message = error_of(annotrace(*FIT, "--out", "run"))
    assert message.startswith("features.npz, row index 4 (item 'photo-4'), column 1 is nan.")


def test_a_file_in_place_of_the_folder(annotrace, crowd):
    assert "labels.csv is a file" in error_of(annotrace(*FIT, "--out", "labels.csv"))


def test_a_checkpoint_left_behind_asks_what_to_do(annotrace, crowd):
    (crowd / "run").mkdir()
    (crowd / "run" / "checkpoint.bin").write_bytes(b"")
    message = error_of(annotrace(*FIT, "--out", "run"))
    assert "--resume" in message
    assert "delete" in message
    assert "damaged" in error_of(annotrace(*FIT, "--out", "run", "--resume"))
