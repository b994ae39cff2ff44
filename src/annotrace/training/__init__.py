"""How it is learned: batches, the loop, devices, checkpoints."""

from annotrace.training.batches import Batch, CrowdData
from annotrace.training.checkpoint import Stages
from annotrace.training.devices import autocast, pick_device, repeatable, seed_of, seeded
from annotrace.training.history import Callback, Epoch, best_epoch, held_out_loss, join_histories
from annotrace.training.loop import train
from annotrace.training.mixup import Mixture, draw_mixture, mixed_logits
from annotrace.training.optimizers import RowAdam, parameter_groups
from annotrace.training.settings import Settings

__all__ = [
    "Batch",
    "Callback",
    "CrowdData",
    "Epoch",
    "Mixture",
    "RowAdam",
    "Settings",
    "Stages",
    "autocast",
    "best_epoch",
    "draw_mixture",
    "held_out_loss",
    "join_histories",
    "mixed_logits",
    "parameter_groups",
    "pick_device",
    "repeatable",
    "seed_of",
    "seeded",
    "train",
]
