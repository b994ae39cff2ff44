"""The training loop, batches, devices, random numbers, optimisers, checkpoints and CUDA graphs."""

from annotrace.devices import pick_device
from annotrace.training.batches import Batch, CrowdData, Inputs
from annotrace.training.checkpoint import CheckpointSeries, fingerprint
from annotrace.training.devices import Precision, autocast, deterministic
from annotrace.training.history import Callback, Epoch, best_epoch, held_out_loss, join_histories
from annotrace.training.loop import check_finite, train
from annotrace.training.mixup import Mixture, draw_mixture, mixed_logits
from annotrace.training.optimizers import RowAdam, parameter_groups
from annotrace.training.progress import expect_trainings, show_trainings
from annotrace.training.randomness import Randomness
from annotrace.training.settings import Schedule, Settings

__all__ = [
    "Batch",
    "Callback",
    "CheckpointSeries",
    "CrowdData",
    "Epoch",
    "Inputs",
    "Mixture",
    "Precision",
    "Randomness",
    "RowAdam",
    "Schedule",
    "Settings",
    "autocast",
    "best_epoch",
    "check_finite",
    "deterministic",
    "draw_mixture",
    "expect_trainings",
    "fingerprint",
    "held_out_loss",
    "join_histories",
    "mixed_logits",
    "parameter_groups",
    "pick_device",
    "show_trainings",
    "train",
]
