"""Rounds that follow each other, as --watch runs them."""

import numpy as np
import pytest
from fake_label_studio import NAMES, TOKEN, FakeLabelStudio
from fake_server import serving

import annotrace as at
from annotrace.cli.connect_items import TaskImages
from annotrace.cli.connect_round import Round, Wishes
from annotrace.cli.output import new_run
from annotrace.connect import LabelStudio

WISHES = {
    **{"text": None, "method": None, "gold": None, "push": True, "queue": True},
    **{"budget": None, "available": None, "costs": 1.0, "cost": None, "min_gain": 0.01},
    **{"seed": 0, "anonymous": False, "raw": False, "quiet": False},
}


@pytest.fixture
def fake():
    fake = FakeLabelStudio(30, ("ann@example.com", "bo@example.com"))
    for number, task in fake.tasks.items():
        task["data"] = {"text": f"{NAMES[number % 3]} words {number}"}
    for task in range(1, 25):
        for user in (2, 3):
            fake.answer(task, user, NAMES[task % 3])
    return fake


@pytest.fixture
def rounds(fake, tmp_path):
    with serving(fake) as url:

        def make(**wishes):
            tool = LabelStudio(url, 7, TOKEN)
            return tool, Round(tool, tmp_path / "run", Wishes(**{**WISHES, **wishes}))

        with new_run(tmp_path / "run", False):
            yield make


def test_only_the_first_round_prints_the_annotators(fake, rounds, capsys):
    tool, each = rounds()
    each.run(tool.pull())
    first = capsys.readouterr().out
    fake.answer(25, 2, "Positive")
    each.run(tool.pull())
    second = capsys.readouterr().out
    assert "Annotators by skill" in first
    assert "Annotators by skill" not in second
    assert "49 labels of 30 items" in second


def test_rounds_from_scratch_are_those_of_one_that_continues(fake, rounds):
    tool, each = rounds()
    each.run(tool.pull())
    fake.answer(25, 2, "Positive")
    each.run(tool.pull())
    version = fake.project["model_version"]
    tool, fresh = rounds()
    fresh.run(tool.pull())
    assert fake.project["model_version"] == version


def test_a_classifier_continues(fake, rounds, tmp_path):
    tool, each = rounds(text="text", method="trace", quiet=True)
    each.run(tool.pull())
    for user in (2, 3):
        fake.answer(25, user, NAMES[25 % 3])
    each.run(tool.pull())
    model = at.load(tmp_path / "run")
    assert model.table_.n_labels == 50
    truth = np.array([NAMES[int(item) % 3] for item in model.table_.items])
    assert np.mean(model.table_.classes[model.result_.estimate] == truth) > 0.9


@pytest.fixture
def pictures(fake):
    for number in fake.tasks:
        pixels = np.zeros((8, 8, 3), np.uint8)
        pixels[..., number % 3] = 200
        fake.upload(number, pixels)


def downloads(fake):
    found = [name for name in fake.requests if "/data/" in name]
    fake.requests.clear()
    return found


def test_images_are_downloaded_and_decoded_once(fake, rounds, pictures, tmp_path, capsys):
    images = TaskImages("image", tmp_path / "images", size=8)
    images.folder.mkdir()
    tool, each = rounds(image=images, method="trace", push=False, queue=False)
    each.run(tool.pull())
    assert len(downloads(fake)) == 30
    assert "decoded 30/30" in capsys.readouterr().err
    fake.answer(25, 2, NAMES[25 % 3])
    each.run(tool.pull())
    assert downloads(fake) == []
    assert "decoded" not in capsys.readouterr().err
    fake.add_task(31, {})
    fake.upload(31, np.full((8, 8, 3), 90, np.uint8))
    each.run(tool.pull())
    assert downloads(fake) == ["GET /data/upload/7/31-photo.png"]
    model = at.load(tmp_path / "run")
    assert model.table_.n_labels == 49
    assert model.table_.n_items == 31


def test_a_gold_item_whose_image_is_skipped(fake, rounds, pictures, tmp_path):
    fake.answer(26, 1, "Positive", ground_truth=True)
    fake.answer(27, 1, "Positive", ground_truth=True)
    fake.files["/data/upload/7/26-photo.png"] = b"no image"
    images = TaskImages("image", tmp_path / "images", size=8, skip_broken=True)
    images.folder.mkdir()
    tool, each = rounds(image=images, method="trace", quiet=True)
    each.run(tool.pull())
    model = at.load(tmp_path / "run")
    gold = {model.table_.items[k] for k in range(29) if model.gold_[k] >= 0}
    assert gold == {"27"}
    assert fake.versions() == {fake.project["model_version"]: 29}


def test_a_task_that_is_deleted_between(fake, rounds, capsys):
    tool, each = rounds()
    pulled = tool.pull()
    fake.delete_task(30)
    each.run(pulled)
    assert "29 predictions; 1 item was deleted meanwhile" in capsys.readouterr().out
    assert fake.versions() == {fake.project["model_version"]: 29}


def test_it_says_when_labels_no_longer_pay(rounds, capsys):
    tool, each = rounds(min_gain=1.0, cost=0.1)
    each.run(tool.pull())
    assert "Further labels no longer pay" in capsys.readouterr().out


def test_quiet_prints_nothing(rounds, capsys):
    tool, each = rounds(quiet=True)
    each.run(tool.pull())
    assert capsys.readouterr().out == ""


def test_gold_that_is_marked_is_no_change_afterwards(fake, rounds, tmp_path):
    (tmp_path / "gold.csv").write_text(f"item,truth\n1,{NAMES[1]}\n")
    tool, each = rounds(gold=tmp_path / "gold.csv")
    fitted = each.run(tool.pull())
    assert tool.pull().n_changes(fitted) == 0
