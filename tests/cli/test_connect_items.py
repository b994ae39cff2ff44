"""Items of a classifier that `annotrace connect` trains, from round to round."""

from types import SimpleNamespace

import numpy as np
import pytest
from fake_label_studio import TOKEN, FakeLabelStudio
from fake_server import serving

from annotrace.cli.connect_items import TaskImages, TaskItems
from annotrace.connect import LabelStudio, Pulled
from annotrace.data import EncodedSource, TextSource

NO_TOOL = SimpleNamespace()


def pulled(**texts):
    return Pulled(None, None, {item: {"text": text} for item, text in texts.items()})


def test_texts_are_those_of_the_last_round_unless_they_changed():
    items = TaskItems(NO_TOOL, "text", None, None, quiet=True)
    first = items.read(pulled(a="one", b="two"))
    assert items.read(pulled(a="one", b="two")) is first
    for changed in (pulled(a="one", b="three"), pulled(b="three", a="one"), pulled(b="three")):
        source = items.read(changed)
        assert source.items.tolist() == list(changed.data)
        assert source.texts[:, 0].tolist() == [each["text"] for each in changed.data.values()]
    assert items.report_options() == {"texts": source}


def test_what_is_encoded_is_shown_as_it_was(models, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    items = TaskItems(NO_TOOL, "text", None, str(models / "text"), quiet=False)
    assert isinstance(items.read(pulled(a="one", b="two")), EncodedSource)
    assert isinstance(items.report_options()["texts"], TextSource)
    assert "Encoded 2 texts with " in capsys.readouterr().out


@pytest.mark.parametrize("size", [4, 6])
def test_images(tmp_path, size):
    fake, colors = (
        FakeLabelStudio(2),
        np.full((2, 8, 8, 3), [[[[10, 20, 30]]], [[[200, 0, 0]]]], np.uint8),
    )
    for task, color in enumerate(colors, start=1):
        fake.upload(task, color)
    images = TaskImages("image", tmp_path, size)
    with serving(fake) as url:
        tool = LabelStudio(url, 7, TOKEN)
        items = TaskItems(tool, None, images, None, quiet=True)
        source = items.read(tool.pull())
    assert source.items.tolist() == ["1", "2"]
    assert source.X.shape == (2, size, size, 3)
    assert source.X[:, 0, 0].tolist() == [color[0, 0].tolist() for color in colors]
    assert items.report_options() == {"images": items.shown}
