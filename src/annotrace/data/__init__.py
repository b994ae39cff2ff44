"""Items: features, texts, images, encoders of texts and images, and built-in data sets."""

from annotrace.data.cifar10 import load_cifar10
from annotrace.data.digits import load_digits
from annotrace.data.encoded import EncodedSource
from annotrace.data.encoders import Encoder, EncoderRecord, encoder_from_record
from annotrace.data.encoding import encode
from annotrace.data.features import read_features
from annotrace.data.images import ImageFolder
from annotrace.data.labelled import LabelledSet
from annotrace.data.mnist import load_mnist
from annotrace.data.source import ArraySource, ItemSource, as_source
from annotrace.data.texts import TextSource

__all__ = [
    "ArraySource",
    "EncodedSource",
    "Encoder",
    "EncoderRecord",
    "ImageFolder",
    "ItemSource",
    "LabelledSet",
    "TextSource",
    "as_source",
    "encode",
    "encoder_from_record",
    "load_cifar10",
    "load_digits",
    "load_mnist",
    "read_features",
]
