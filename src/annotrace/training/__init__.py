"""How it is learned: batches, the loop, devices, checkpoints."""

from annotrace.training.batches import Batch, CrowdData
from annotrace.training.devices import autocast, pick_device, repeatable, seed_of, seeded
from annotrace.training.history import Callback, Epoch, best_epoch
from annotrace.training.loop import train
from annotrace.training.settings import Settings

__all__ = [
    "Batch",
    "Callback",
    "CrowdData",
    "Epoch",
    "Settings",
    "autocast",
    "best_epoch",
    "pick_device",
    "repeatable",
    "seed_of",
    "seeded",
    "train",
]
