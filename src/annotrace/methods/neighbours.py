"""How well items near each other predict each other's labels.

Where networks are not to be trained only to find out how to scale features, the nearest items tell:
under the better scaling, the labels of an item are more likely by those of its neighbours.
"""

from __future__ import annotations

import torch
from torch import Tensor

NEIGHBOURS = 10
UNSEEN = 0.1
"""Labels of each class that an item's neighbours are assumed to have beside their own."""


def neighbour_loss(rows: Tensor, votes: Tensor) -> float:
    """Return the loss per label by the shares of votes among an item's nearest neighbours.

    Parameters
    ----------
    rows : Tensor of shape (n_items, n_features)
    votes : Tensor of shape (n_items, n_classes)
        The labels of each class that an item has, or their shares.

    Examples
    --------
    >>> rows = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
    >>> near, mixed = torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]])
    >>> of_classes = torch.eye(2)
    >>> neighbour_loss(rows, of_classes[near]) < neighbour_loss(rows, of_classes[mixed])
    True
    """
    votes = votes.to(rows.dtype)
    distance = torch.cdist(rows, rows).fill_diagonal_(torch.inf)
    # At most half of the items, so that a few items have neighbours that differ.
    number = max(1, min(NEIGHBOURS, (len(rows) - 1) // 2))
    nearest = distance.topk(number, largest=False).indices
    counts = votes[nearest].sum(1) + UNSEEN
    log_share = (counts / counts.sum(1, keepdim=True)).log()
    return float(-(log_share * votes).sum() / votes.sum().clamp_min(1))
