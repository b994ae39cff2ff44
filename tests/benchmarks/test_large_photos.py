import json
import sys

import large_photos
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.mark.parametrize("task", large_photos.TASKS)
def test_a_measurement(tmp_path, monkeypatch, capsys, task):
    monkeypatch.setattr(large_photos, "WIDTH", 400)
    monkeypatch.setattr(large_photos, "HEIGHT", 304)
    monkeypatch.setattr(large_photos, "N_SCENES", 2)
    large_photos.make_photos(tmp_path, 11)
    large_photos.run_task(task, tmp_path, 1)
    found = json.loads(capsys.readouterr().out)
    assert found["n_photos"] == {"train": 11, "encode": 3, "png": 2}[task]
    assert found["seconds"] > 0
    assert found["peak_megabytes"] > 10
    assert found["busy_cores"] > 0
