import torch
import torch.nn.functional as F

from annotrace.methods.fold_networks import PosteriorLoss
from annotrace.training import Batch, Mixture

N_FOLDS, N_CLASSES = 3, 4
FOLD = torch.tensor([0, 1, 2, 0, 1])
ITEMS = torch.tensor([4, 2, 0])
NO_LABELS = (torch.zeros(0, dtype=torch.long),) * 3


def posterior_and_logits():
    generator = torch.Generator().manual_seed(0)
    targets = torch.rand(5, N_CLASSES, generator=generator).softmax(1)
    return targets, torch.randn(N_FOLDS, len(ITEMS), N_CLASSES, generator=generator)


def by_hand(targets, logits, items):
    """The cross-entropy of each network on the items outside its fold."""
    log_p, total = F.log_softmax(logits, -1), 0.0
    for network in range(N_FOLDS):
        for row, item in enumerate(items.tolist()):
            if FOLD[item] != network:
                total -= float((targets[item] * log_p[network, row]).sum())
    return torch.tensor(total / len(items))


def test_no_network_learns_the_posterior_of_its_fold():
    targets, logits = posterior_and_logits()
    loss = PosteriorLoss(targets, FOLD, N_FOLDS)
    found = loss(Batch(ITEMS, ITEMS, *NO_LABELS), logits)
    torch.testing.assert_close(found, by_hand(targets, logits, ITEMS))


def test_in_a_mixture_each_item_reaches_the_networks_outside_its_own_fold():
    targets, logits = posterior_and_logits()
    loss, partner = PosteriorLoss(targets, FOLD, N_FOLDS), torch.tensor([1, 2, 0])
    mixture = Mixture(torch.tensor(0.3), partner)
    found = loss.mixed(Batch(ITEMS, ITEMS, *NO_LABELS), logits, mixture)
    both = by_hand(targets, logits, ITEMS), by_hand(targets, logits, ITEMS[partner])
    torch.testing.assert_close(found, 0.3 * both[0] + 0.7 * both[1])
