"""Tiny models with random weights, in folders like those of the Hugging Face hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = (
    *("a", "the", "is", "not", "very", "good", "bad", "film", "dog", "cat", "red", "blue", "house"),
    *("runs", "sleeps", "and", "but", "quite", "old", "new", "story", "actor", "plot", "ending"),
)
LENGTH, WIDTH, SIDE = 32, 16, 16
"""Tokens of a text, numbers of an encoding, and pixels of the side of an image."""


def write_text_model(folder: Path, seed: int = 0) -> Path:
    """Write a BERT of two layers whose words are `WORDS`."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = _tokenizer()
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=LENGTH, **_layers())
    return _save(folder, BertModel(config), tokenizer)


def write_image_model(folder: Path, seed: int = 0, pooler: bool = True) -> Path:
    """Write a vision transformer, with or without the weights of a pooler."""
    import torch
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(seed)
    config = ViTConfig(image_size=SIDE, patch_size=8, **_layers())
    _write_image_processor(folder)
    return _save(folder, ViTModel(config, add_pooling_layer=pooler))


def write_clip_model(folder: Path, seed: int = 0) -> Path:
    """Write a model that encodes texts and images in one space."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    torch.manual_seed(seed)
    tokenizer = _tokenizer()
    end = tokenizer.sep_token_id
    text = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": LENGTH,
        "eos_token_id": end,
        "bos_token_id": tokenizer.cls_token_id,
    }
    vision = {"image_size": SIDE, "patch_size": 8, **_layers()}
    config = CLIPConfig(text_config={**text, **_layers()}, vision_config=vision, projection_dim=12)
    _write_image_processor(folder)
    return _save(folder, CLIPModel(config), tokenizer)


def write_sentence_model(folder: Path, seed: int = 0) -> Path:
    """Write a folder of sentence-transformers: a text model, the mean of its tokens, length 1."""
    write_text_model(folder, seed)
    names = ("Transformer", "Pooling", "Normalize")
    paths = [f"{number}_{name}" if number else "" for number, name in enumerate(names)]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{name}",
        }
        for number, (name, path) in enumerate(zip(names, paths, strict=True))
    ]
    _write_json(folder / "modules.json", modules)
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": LENGTH})
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}
    _write_json(folder / paths[1] / "config.json", pooling)
    return folder


def _layers() -> dict[str, int]:
    return {
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    words = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, numbers[name]) for name in ("[CLS]", "[SEP]")],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=words, model_max_length=LENGTH, **dict(zip(names, SPECIAL, strict=True))
    )


def _write_image_processor(folder: Path) -> None:
    settings = {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": SIDE, "width": SIDE},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    _write_json(folder / "preprocessor_config.json", settings)


def _write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def _save(folder: Path, *parts: Any) -> Path:
    for part in parts:
        part.save_pretrained(folder)
    return folder
