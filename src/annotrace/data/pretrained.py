"""Pretrained models as encoders: text and image models of transformers, sentence-transformers.

Code in the folder of a model is never executed (``trust_remote_code=False``), and loading downloads
nothing. Weights that are not in safetensors are read with ``weights_only=True``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotrace.data.hugging_face import require
from annotrace.data.model_files import ModelFiles
from annotrace.errors import InputError, first_few

Batch: TypeAlias = Iterable[Any]
"""Texts, pairs of texts, or Pillow images, of which an image model holds one at a time."""

_SAFE: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
_NEEDED = {
    "text": (("tokenizer*", "vocab*", "*.model"), "tokenizer, so that it does not encode texts"),
    "images": (
        ("preprocessor_config.json", "processor_config.json"),
        "image processor (preprocessor_config.json), so that it does not encode images",
    ),
}
# Tokenizers without a limit have a very large number.
_NO_LIMIT = 1_000_000
_USUAL_LENGTH = 512


class PretrainedModel:
    """A model that is loaded, and encodes batches.

    Attributes
    ----------
    min_side : int or None
        Images may be decoded at a reduced size whose sides are at least twice this long.
    """

    min_side: int | None = None

    def __call__(self, items: Batch) -> NDArray[np.float32]:
        """Encode a batch, shape (n_items, n_features)."""
        raise NotImplementedError


class TextModel(PretrainedModel):
    """A text model: the mean of the last hidden states over the tokens of a text.

    This is what sentence-transformers does with a model that has no pooling of its own; the pooler
    of a model like BERT was trained to predict the next sentence, and is rarely better. A model
    that shares a space with images (CLIP, SigLIP) returns its projected features instead. Texts are
    truncated at the maximum length of the model; a pair is one sequence of both texts.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        tokenizer = require("transformers").AutoTokenizer.from_pretrained(folder, **_SAFE)
        self.model, _ = _load_model(folder, device)
        if getattr(self.model.config, "is_encoder_decoder", False):
            self.model = self.model.get_encoder()
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        self.tokenizer, self.device = tokenizer, device
        self.is_joint = hasattr(self.model, "get_text_features")
        self.max_length = _max_length(tokenizer, self.model.config)

    def __call__(self, items: Batch) -> NDArray[np.float32]:
        """Encode texts, or pairs of texts."""
        listed = list(items)
        texts, others = (
            (listed, None) if isinstance(listed[0], str) else map(list, zip(*listed, strict=True))
        )
        tokens = self.tokenizer(
            texts,
            others,
            # SigLIP was trained with full length only; CLIP ignores what is beyond the end.
            padding="max_length" if self.is_joint else True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        ).to(self.device)
        with torch.inference_mode():
            if self.is_joint:
                return _as_rows(self.model.get_text_features(**tokens))
            hidden = self.model(**tokens).last_hidden_state
            mask = tokens["attention_mask"].unsqueeze(-1)
            return _as_rows((hidden * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1))


class ImageModel(PretrainedModel):
    """An image model: its pooled output, or the mean of the last hidden states over the patches.

    The pooled output is not used if its weights are not among those of the model: transformers
    would draw them at random. A model that shares a space with texts (CLIP, SigLIP) returns its
    projected features.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        # The other backend needs torchvision, and resizes slightly differently. Versions before
        # the one that introduced `backend` know `use_fast` only.
        self.processor = require("transformers").AutoImageProcessor.from_pretrained(
            folder, backend="pil", use_fast=False, **_SAFE
        )
        self.model, self.has_pooler = _load_model(folder, device)
        self.device = device
        self.min_side = _resized_side(self.processor)

    def __call__(self, items: Batch) -> NDArray[np.float32]:
        """Encode Pillow images in mode RGB."""
        inputs = [self.processor(images=image, return_tensors="pt") for image in items]
        batch = {
            name: torch.cat([each[name] for each in inputs]).to(self.device) for name in inputs[0]
        }
        with torch.inference_mode():
            if hasattr(self.model, "get_image_features"):
                return _as_rows(self.model.get_image_features(**batch))
            output = self.model(**batch)
            pooled = getattr(output, "pooler_output", None) if self.has_pooler else None
            return _as_rows(_mean_patch(output.last_hidden_state) if pooled is None else pooled)


class SentenceModel(PretrainedModel):
    """A model of sentence-transformers, with its own pooling, projection and normalisation.

    A pair of texts becomes the encodings u and v of both and their absolute difference, as in
    Reimers and Gurevych, "Sentence-BERT", 2019: such a model was not trained on two texts at once.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        package = require("sentence_transformers")
        self.model = package.SentenceTransformer(str(folder), device=str(device), **_SAFE)

    def __call__(self, items: Batch) -> NDArray[np.float32]:
        """Encode texts, pairs of texts, or images if the model takes them."""
        listed = list(items)
        if not isinstance(listed[0], tuple):
            return self._encode(listed)
        one, other = (self._encode(list(texts)) for texts in zip(*listed, strict=True))
        return np.concatenate([one, other, abs(one - other)], axis=1)

    def _encode(self, items: list[Any]) -> NDArray[np.float32]:
        encoded = self.model.encode(items, batch_size=len(items), show_progress_bar=False)
        return np.asarray(encoded, np.float32)


def load_model(files: ModelFiles, kind: str, device: torch.device) -> PretrainedModel:
    """Load a model for items of a kind: "text", "pairs" or "images"."""
    needed, needs = _NEEDED["images" if kind == "images" else "text"]
    if not files.is_sentence_model and not files.has(*needed):
        raise InputError(f"{files.name} has no {needs}. Choose a model for {kind}.")
    load: Callable[[Path, torch.device], PretrainedModel] = (
        SentenceModel if files.is_sentence_model else ImageModel if kind == "images" else TextModel
    )
    return load(files.folder, device)


def _load_model(folder: Path, device: torch.device) -> tuple[Any, bool]:
    """Load a model in float32; return it, and whether it has the weights of its pooler."""
    model, loaded = require("transformers").AutoModel.from_pretrained(
        folder, output_loading_info=True, weights_only=True, **_SAFE
    )
    absent = sorted(loaded["missing_keys"])
    needed = [name for name in absent if "pooler" not in name]
    if needed:
        raise InputError(
            f"{folder} lacks the weights {first_few(needed)} of a {type(model).__name__}, which "
            "would be drawn at random. Use a model whose weights are complete."
        )
    return model.float().to(device).eval(), not absent


def _max_length(tokenizer: Any, config: Any) -> int:
    """Return the largest number of tokens."""
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    if tokenizer.model_max_length < _NO_LIMIT:
        return int(min(tokenizer.model_max_length, positions or _NO_LIMIT))
    # RoBERTa and its like count positions from 2.
    return _USUAL_LENGTH if positions is None else int(positions) - 2


def _resized_side(processor: Any) -> int | None:
    """Return the longest side that images are resized to, None if they keep their size."""
    if not getattr(processor, "do_resize", False):
        return None
    sides = [side for side in dict(processor.size).values() if side is not None]
    return max(map(int, sides), default=None)


def _mean_patch(hidden: Tensor) -> Tensor:
    """Return the mean over patches of (n, n_patches, width) or (n, width, height, width)."""
    return hidden.mean(dim=1) if hidden.ndim == 3 else hidden.flatten(2).mean(dim=2)


def _as_rows(output: Any) -> NDArray[np.float32]:
    """Return an output, or the pooled part of it, as an array of shape (n, n_features)."""
    pooled: Tensor = output if isinstance(output, Tensor) else output.pooler_output
    return pooled.flatten(1).float().cpu().numpy()
