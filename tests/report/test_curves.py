import numpy as np

from annotrace.report.curves import HEIGHT, MAX_POINTS, WIDTH, curves_of
from annotrace.training import Epoch


def points(line):
    return [tuple(map(float, point.split(","))) for point in line.split()]


def test_a_curve_fills_its_frame_and_marks_the_best_epoch():
    losses, held_out = [4.0, 2.0, 1.0], [3.0, 1.0, 2.0]
    history = [
        Epoch(k + 1, a, b, 0.0) for k, (a, b) in enumerate(zip(losses, held_out, strict=True))
    ]
    loss, held = curves_of(history, ())
    expected = [(0, 0), (WIDTH / 2, 2 / 3 * HEIGHT), (WIDTH, HEIGHT)]
    np.testing.assert_allclose(points(loss.lines[0]), expected, atol=0.05)
    assert held.best == (WIDTH / 2, HEIGHT)
    assert held.summary == "The lowest, 1.000, was at epoch 2."
    assert [tick.text for tick in loss.x] == ["1", "2", "3"]


def test_stages_are_lines_of_their_own():
    history = [Epoch(1, 3.0, 2.0, 0.0), Epoch(2, 2.0, 1.0, 0.0), Epoch(3, 5.0, None, 0.0)]
    loss, held = curves_of(history, ())
    assert [len(points(line)) for line in loss.lines] == [2, 1]
    assert [len(points(line)) for line in held.lines] == [2]


def test_long_trainings_are_thinned():
    history = [Epoch(k + 1, 1 / (k + 1), None, 0.0) for k in range(10_000)]
    (loss,) = curves_of(history, ())
    assert len(points(loss.lines[0])) <= MAX_POINTS


def test_an_aggregation_shows_its_iterations():
    (curve,) = curves_of((), [-10.0, -5.0, -4.0])
    assert points(curve.lines[0])[-1] == (WIDTH, 0)
    assert curves_of((), [-1.0]) == []
