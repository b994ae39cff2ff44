import matplotlib.pyplot as plt
import pytest

from annotrace.experiments.figures import close_up, draw_panel, shared_draws


def run(method, skill, seed, accuracy):
    run = {"method": method, "skill": skill, "seed": seed, "accuracy": accuracy}
    return {**run, "annotator_accuracy": skill, "dominant": True}


# The trace has three draws at either skill, MBEM the first.
RUNS = [
    *(run("trace", 0.25, seed, accuracy) for seed, accuracy in enumerate((0.7, 0.4, 0.3))),
    *(run("trace", 0.3, seed, 0.99) for seed in (4, 7, 9)),
    run("mbem", 0.25, 0, 0.8),
    run("mbem", 0.3, 4, 0.9),
]


def lines_of(results):
    _, axes = plt.subplots()
    draw_panel(axes, results, ("trace", "mbem"), "accuracy")
    plt.close()
    return {line.get_label(): list(line.get_ydata()) for line in axes.lines}


def test_lines_go_through_the_draws_that_all_methods_have_and_others_are_dots():
    lines = lines_of(RUNS)
    assert lines["trace"] == pytest.approx([70, 99])
    assert lines["MBEM"] == pytest.approx([80, 90])
    assert {40, 30} <= {round(value) for value in lines["trace, other draws"]}


def test_where_all_have_several_draws_lines_are_their_means():
    more = [run("mbem", 0.25, 1, 0.6), run("mbem", 0.25, 2, 0.4)]
    lines = lines_of([*RUNS, *more])
    assert lines["trace"] == pytest.approx([100 * (0.7 + 0.4 + 0.3) / 3, 99])
    assert lines["MBEM"] == pytest.approx([60, 90])


def test_an_unfinished_sweep_without_shared_draws_is_drawn_from_what_there_is():
    only = [run("trace", 0.3, 4, 0.99), run("mbem", 0.3, 7, 0.9)]
    assert shared_draws(only) == {(0.3, 4), (0.3, 7)}
    assert lines_of(only)["trace"] == pytest.approx([99])


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
