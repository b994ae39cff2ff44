import numpy as np
import pytest
from hypothesis import settings

from annotrace import seeds

# The same examples on every machine, and no verdict on how fast it is.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def repeatable_seeds(monkeypatch):
    """Fits without a random state draw the same seeds in every run of the tests."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(seeds, "_fresh_seed", lambda: int(rng.integers(2**31)))


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder of tiny models with random weights: text, image, clip and sentence."""
    pytest.importorskip("transformers")
    import tiny_models

    folder = tmp_path_factory.mktemp("models")
    tiny_models.write_text_model(folder / "text")
    tiny_models.write_image_model(folder / "image")
    tiny_models.write_clip_model(folder / "clip")
    tiny_models.write_sentence_model(folder / "sentence")
    return folder
