"""Items: features, texts, images, encoders of texts and images, and built-in data sets."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotrace.data.cifar10 import load_cifar10
    from annotrace.data.digits import load_digits
    from annotrace.data.encoded import EncodedSource
    from annotrace.data.encoders import Encoder, EncoderRecord, encoder_from_record
    from annotrace.data.encoding import encode
    from annotrace.data.features import read_features
    from annotrace.data.image_source import ImageSource
    from annotrace.data.images import ImageFolder
    from annotrace.data.labelled import LabelledSet
    from annotrace.data.mnist import load_mnist
    from annotrace.data.shards import ImageShards, open_images
    from annotrace.data.source import ArraySource, ItemSource, as_source
    from annotrace.data.texts import TextSource

# Imported on first use, so that a process that decodes images starts without importing torch.
_HOMES = {
    "ArraySource": "source",
    "EncodedSource": "encoded",
    "Encoder": "encoders",
    "EncoderRecord": "encoders",
    "ImageFolder": "images",
    "ImageShards": "shards",
    "ImageSource": "image_source",
    "ItemSource": "source",
    "LabelledSet": "labelled",
    "TextSource": "texts",
    "as_source": "source",
    "encode": "encoding",
    "encoder_from_record": "encoders",
    "load_cifar10": "cifar10",
    "load_digits": "digits",
    "load_mnist": "mnist",
    "open_images": "shards",
    "read_features": "features",
}

__all__ = [
    "ArraySource",
    "EncodedSource",
    "Encoder",
    "EncoderRecord",
    "ImageFolder",
    "ImageShards",
    "ImageSource",
    "ItemSource",
    "LabelledSet",
    "TextSource",
    "as_source",
    "encode",
    "encoder_from_record",
    "load_cifar10",
    "load_digits",
    "load_mnist",
    "open_images",
    "read_features",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"annotrace.data.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'annotrace.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
