from annotrace.training import Epoch, best_epoch, held_out_loss, join_histories
from annotrace.training.history import describe_losses


def test_the_losses_of_an_epoch_are_described():
    assert describe_losses(Epoch(1, 0.5, None, 1.0)) == "loss 0.5000"
    assert describe_losses(Epoch(2, 0.5, 0.25, 1.0)) == "loss 0.5000  held-out 0.2500"


def test_the_best_epoch():
    history = [Epoch(k + 1, 0.0, held_out, 0.0) for k, held_out in enumerate([0.3, -0.1, 0.2])]
    assert best_epoch(history).number == 2
    assert best_epoch([Epoch(1, 0.0, None, 0.0)]) is None
    assert held_out_loss(history) == -0.1
    assert held_out_loss([]) == 0.0


def test_joined_histories_continue_numbers_and_times():
    first = [Epoch(1, 0.9, None, 2.0), Epoch(2, 0.8, None, 4.0)]
    joined = join_histories(first, [Epoch(1, 0.7, 0.5, 3.0)])
    assert joined == [*first, Epoch(3, 0.7, 0.5, 7.0)]
    assert join_histories([], first) == first
