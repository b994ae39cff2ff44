from pathlib import Path

import pytest

from annotrace.errors import InputError
from annotrace.labels import LabelTable

SAMPLES = Path(__file__).parents[1] / "samples"


def test_an_unassigned_job_is_named_after_its_folder():
    table = LabelTable.read(SAMPLES / "cvat")
    assert table.annotators.tolist() == ["ann", "job_12"]


def test_tracks_of_videos_are_rejected(tmp_path):
    (tmp_path / "a.xml").write_text("<annotations><track id='0'/></annotations>")
    with pytest.raises(InputError, match=r"a\.xml, element 1 is a track of a video"):
        LabelTable.read(tmp_path / "a.xml", annotator_name="ann")


def test_images_have_only_a_name():
    with pytest.raises(InputError, match="images have only a name"):
        LabelTable.read(SAMPLES / "cvat", item="id")


def test_other_files_than_xml_are_not_cvat(read):
    with pytest.raises(InputError, match="is not XML, so not CVAT for images"):
        read('[{"item": "a"}]', "labels.json", format="cvat")
