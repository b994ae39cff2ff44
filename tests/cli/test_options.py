import pytest

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said", "--truth", "gold")


@pytest.mark.parametrize(
    "args",
    [("fit", "labels.csv"), ("predict", "run"), ("aggregate", "labels.csv"), ("simulate",)],
)
def test_out_is_required(annotrace, args):
    result = annotrace(*args)
    assert result.exit_code == 2
    assert "Missing option '--out'" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("demo", "--seed", "99999999999999999999"), "is not in the range 0<=x<=4294967295"),
        (("fit", "labels.csv", "--seed", "-1", "--out", "run"), "is not in the range 0<=x"),
        (("aggregate", "labels.csv", "--seed", "-1", "--out", "run"), "is not in the range 0<=x"),
        (("simulate", "--seed", "-1", "--out", "sim"), "is not in the range 0<=x"),
        (("fit", "a.csv", "--image-size", 100_000, "--out", "run"), "in the range 1<=x<=2048"),
    ],
)
def test_seeds_out_of_range_are_rejected(annotrace, args, message):
    result = annotrace(*args)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("given", [(), ("--features", "features.npz", "--images", "photos")])
def test_either_features_or_images(annotrace, crowd, given):
    result = annotrace("fit", "labels.csv", *COLUMNS, *given, "--out", "run")
    assert result.exit_code == 2
    assert "either --features FILE or --images FOLDER" in result.stderr
