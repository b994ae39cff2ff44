import matplotlib.pyplot as plt
import pytest

from annotrace.experiments.skill_curves import close_up


@pytest.mark.parametrize(("lowest", "bottom"), [(0.97, 96.5), (0.5, 0.0)])
def test_a_picture_begins_at_the_worst_method_where_all_are_good(lowest, bottom):
    _, axes = plt.subplots()
    axes.plot([20.0, 100.0])
    axes.set_ylim(0, 100)
    close_up(axes, [{"accuracy": 0.99}, {"accuracy": lowest}])
    assert axes.get_ylim() == pytest.approx((bottom, 100))
    plt.close()


def test_the_legend_of_a_close_up_has_whom_it_leaves_out():
    _, axes = plt.subplots()
    axes.plot([28.0, 91.0], label="annotators")
    axes.plot([97.0, 99.0], label="trace")
    close_up(axes, [{"accuracy": 0.97}, {"accuracy": 0.99}])
    assert axes.get_legend_handles_labels()[1] == ["annotators (28 to 91 %)", "trace"]
    plt.close()
