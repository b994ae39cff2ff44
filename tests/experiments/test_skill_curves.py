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
