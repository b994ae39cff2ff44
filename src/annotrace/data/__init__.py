"""Items: feature arrays, image folders, and the data sets MNIST, CIFAR-10 and digits."""

from annotrace.data.cifar10 import load_cifar10
from annotrace.data.digits import load_digits
from annotrace.data.features import read_features
from annotrace.data.images import ImageFolder
from annotrace.data.labelled import LabelledSet
from annotrace.data.mnist import load_mnist
from annotrace.data.source import ArraySource, ItemSource, as_source

__all__ = [
    "ArraySource",
    "ImageFolder",
    "ItemSource",
    "LabelledSet",
    "as_source",
    "load_cifar10",
    "load_digits",
    "load_mnist",
    "read_features",
]
