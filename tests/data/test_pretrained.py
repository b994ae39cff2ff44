"""Pretrained models, compared with the same model called by hand, one item at a time."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from annotrace.data.encoders import load_encoder
from annotrace.errors import InputError

transformers = pytest.importorskip("transformers")
tiny_models = pytest.importorskip("tiny_models")

TEXTS = ["a good film", "the dog runs and the cat sleeps but the house is old", "bad", ""]
PAIRS = [("a good film", "a bad plot"), ("the dog", "the cat sleeps and runs"), ("", "red")]
LONG = " ".join(["dog"] * 100)
PIXELS = np.random.default_rng(0).integers(0, 256, (3, 20, 30, 3), dtype=np.uint8)
IMAGES = [Image.fromarray(pixels) for pixels in PIXELS]
IMAGES[1] = IMAGES[1].resize((50, 17))


def load(folder, kind):
    return load_encoder(str(folder), kind, cache=False)


@pytest.fixture
def copied(models, tmp_path):
    """Return a function that copies a model, to be damaged."""
    return lambda name: Path(shutil.copytree(models / name, tmp_path / name))


def token_states(folder, *texts):
    """Return the last hidden states of one text or pair, without padding."""
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(
        *texts, truncation=True, return_tensors="pt"
    )
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        return model(**tokens).last_hidden_state[0].numpy()


def prepare(image):
    """Resize and normalise as the settings of the image processor say."""
    size = (tiny_models.SIDE, tiny_models.SIDE)
    resized = np.asarray(image.resize(size, Image.Resampling.BILINEAR), np.float32)
    return torch.tensor((resized / 255 - 0.5) / 0.5).permute(2, 0, 1)[None]


def test_a_text_is_the_mean_of_its_tokens(models):
    features = load(models / "text", "text")([*TEXTS, LONG])
    expected = [token_states(models / "text", text).mean(axis=0) for text in [*TEXTS, LONG]]
    np.testing.assert_allclose(features, expected, atol=1e-5)
    assert features.dtype == np.float32
    assert len(token_states(models / "text", LONG)) == tiny_models.LENGTH


def test_a_pair_is_one_sequence(models):
    features = load(models / "text", "pairs")(PAIRS)
    expected = [token_states(models / "text", *pair).mean(axis=0) for pair in PAIRS]
    np.testing.assert_allclose(features, expected, atol=1e-5)
    flipped = load(models / "text", "pairs")([pair[::-1] for pair in PAIRS])
    assert np.abs(flipped - features).max() > 0.01


@pytest.mark.parametrize("name", ["text", "clip", "sentence"])
def test_a_text_does_not_depend_on_its_batch(models, name):
    encode = load(models / name, "text")
    together = encode([*TEXTS, LONG])
    alone = np.concatenate([encode([text]) for text in [*TEXTS, LONG]])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_an_image_is_the_pooled_output(models):
    encode = load(models / "image", "images")
    model = transformers.ViTModel.from_pretrained(models / "image").eval()
    with torch.no_grad():
        expected = np.concatenate([model(prepare(image)).pooler_output for image in IMAGES])
    np.testing.assert_allclose(encode(iter(IMAGES)), expected, atol=1e-5)
    assert encode.min_side == tiny_models.SIDE


def test_a_pooler_without_weights_is_not_used(tmp_path):
    """Its weights would be drawn at random, so that features differed from call to call."""
    folder = tiny_models.write_image_model(tmp_path / "image", pooler=False)
    features = load(folder, "images")(IMAGES)
    np.testing.assert_array_equal(features, load(folder, "images")(IMAGES))
    model = transformers.ViTModel.from_pretrained(folder, add_pooling_layer=False).eval()
    with torch.no_grad():
        states = [model(prepare(image)).last_hidden_state[0].mean(dim=0) for image in IMAGES]
    np.testing.assert_allclose(features, np.stack(states), atol=1e-5)


def test_texts_and_images_of_clip_share_a_space(models):
    texts, images = load(models / "clip", "text")(TEXTS), load(models / "clip", "images")(IMAGES)
    assert texts.shape[1] == images.shape[1] == 12
    model = transformers.CLIPModel.from_pretrained(models / "clip").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(models / "clip")
    with torch.no_grad():
        for text, features in zip(TEXTS, texts, strict=True):
            output = model.text_model(**tokenizer(text, return_tensors="pt")).pooler_output
            np.testing.assert_allclose(model.text_projection(output)[0], features, atol=1e-5)
        for image, features in zip(IMAGES, images, strict=True):
            output = model.vision_model(prepare(image)).pooler_output
            np.testing.assert_allclose(model.visual_projection(output)[0], features, atol=1e-5)


def test_a_sentence_model_has_its_own_pooling(models):
    features = load(models / "sentence", "text")(TEXTS)
    means = np.stack([token_states(models / "sentence", text).mean(axis=0) for text in TEXTS])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(features, expected, atol=1e-5)


def test_a_pair_of_a_sentence_model_is_both_and_their_difference(models):
    encode = load(models / "sentence", "text")
    one, other = (encode([pair[place] for pair in PAIRS]) for place in (0, 1))
    expected = np.concatenate([one, other, np.abs(one - other)], axis=1)
    features = load(models / "sentence", "pairs")(PAIRS)
    np.testing.assert_allclose(features, expected, atol=1e-6)


def test_a_tokenizer_without_a_limit_takes_that_of_the_model(copied):
    folder = copied("text")
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "model_max_length": 10**30}))
    assert load(folder, "text")([LONG]).shape == (1, tiny_models.WIDTH)


def test_the_encoder_of_an_encoder_decoder_is_used(models, tmp_path):
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(models / "text")
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2
    )
    model = transformers.T5Model(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    tokenizer.save_pretrained(tmp_path)
    with torch.no_grad():
        states = model.encoder(**tokenizer(TEXTS[0], return_tensors="pt")).last_hidden_state
    features = load(tmp_path, "text")(TEXTS)
    np.testing.assert_allclose(features[0], states[0].mean(dim=0), atol=1e-5)


class Hostile:
    """What creates a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_old_weights_are_read_without_running_what_they_hold(models, copied, tmp_path):
    folder = copied("text")
    weights = transformers.AutoModel.from_pretrained(folder).state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    expected = load(models / "text", "text")(TEXTS)
    np.testing.assert_allclose(load(folder, "text")(TEXTS), expected, atol=1e-6)
    torch.save({**weights, "x": Hostile(tmp_path / "run")}, folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"text cannot be loaded to encode texts \("):
        load(folder, "text")(TEXTS)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["text", "image", "sentence"])
def test_code_of_a_model_is_never_run(copied, tmp_path, name):
    folder = copied(name)
    code = f"from pathlib import Path\nPath({str(tmp_path / 'run')!r}).touch()\n"
    (folder / "code.py").write_text(f"{code}class Model: pass\n")
    if name == "sentence":
        modules = json.loads((folder / "modules.json").read_text())
        modules[2]["type"] = "code.Model"
        (folder / "modules.json").write_text(json.dumps(modules))
    else:
        settings = json.loads((folder / "config.json").read_text())
        names = ("AutoConfig", "AutoModel", "AutoTokenizer", "AutoImageProcessor")
        settings |= {"auto_map": dict.fromkeys(names, "code.Model"), "model_type": "other"}
        (folder / "config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match="cannot be loaded to encode"):
        load(folder, "images" if name == "image" else "text")(TEXTS)
    assert not (tmp_path / "run").exists()


def truncate_weights(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def remove_weights(folder):
    (folder / "model.safetensors").unlink()


def break_config(folder):
    (folder / "config.json").write_text("{")


@pytest.mark.parametrize("damage", [truncate_weights, remove_weights, break_config])
@pytest.mark.parametrize("name", ["text", "image", "sentence"])
def test_a_damaged_model_is_one_line(copied, capfd, name, damage):
    folder = copied(name)
    damage(folder)
    with pytest.raises(InputError) as caught:
        load(folder, "images" if name == "image" else "text")(TEXTS)
    assert str(caught.value).startswith(f"{folder} cannot be loaded to encode ")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_missing_weights_are_not_drawn_at_random(copied):
    folder = copied("text")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "layer.0.attention" in name)
    del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=f"lacks the weights '{name}' of a BertModel"):
        load(folder, "text")(TEXTS)


@pytest.mark.parametrize(
    ("name", "kind", "items", "message"),
    [
        ("text", "images", IMAGES, "has no image processor (preprocessor_config.json)"),
        ("image", "text", TEXTS, "has no tokenizer, so that it does not encode texts"),
        ("sentence", "images", IMAGES, "cannot encode images (Modality 'image' is not supported"),
    ],
)
def test_a_model_of_another_kind_is_refused(models, name, kind, items, message):
    with pytest.raises(InputError) as caught:
        load(models / name, kind)(items)
    assert message in str(caught.value)


def test_loading_and_encoding_print_nothing(models, capfd):
    for name, kind, items in (
        *(("text", "text", TEXTS), ("image", "images", IMAGES)),
        *(("clip", "text", TEXTS), ("sentence", "text", TEXTS)),
    ):
        load(models / name, kind)(items)
    assert capfd.readouterr() == ("", "")
