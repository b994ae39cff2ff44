"""What --features, --images, --text and --encoder accept together."""

import pytest

COLUMNS = ("--item", "photo", "--annotator", "who", "--label", "said", "--truth", "gold")


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("--features", "features.npz", "--images", "photos"),
        ("--features", "features.npz", "--text", "texts.csv"),
    ],
)
def test_items_are_given_in_exactly_one_way(annotrace, crowd, given):
    result = annotrace("fit", "labels.csv", *COLUMNS, *given, "--out", "run")
    assert result.exit_code == 2
    assert "exactly one of --features FILE, --images FOLDER and --text FILE" in result.stderr
    assert not (crowd / "run").exists()
