import growth_figure
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread


def row(part, method="dawid-skene", sizes=(200, 10, 3, 5), **given):
    found = {"part": part, "method": method, "sizes": list(sizes), "n_processes": 1}
    return found | {"cpu_seconds": 2.0, "iterations": 20, "megabytes": 5.0} | given


@pytest.fixture
def figures(monkeypatch):
    """Keep the figures that are saved."""
    kept, save = [], Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda f, *a, **k: (kept.append(f), save(f, *a, **k))[1])
    return kept


def test_points_are_sizes_and_seconds_per_iteration(tmp_path, figures):
    rows = [
        row("labels", sizes=(2_000, 10, 3, 5), cpu_seconds=6.0),
        row("labels", sizes=(200, 10, 3, 5)),
        row("labels", "ensemble", megabytes=80.0),
        row("labels", sizes=(20_000, 10, 3, 5), stopped="memory"),
        row("processes", n_processes=2),
        row("S", sizes=(7, 7, 7, 7)),
    ]
    written = growth_figure.draw_growth(rows, tmp_path / "growth")
    assert {path.name for path in written} == {"growth.svg", "growth.png"}
    assert imread(tmp_path / "growth.png").shape[2] == 4
    time, *_, processes = figures[0].axes[:4]
    assert time.lines[0].get_xydata().tolist() == [[1_000, 0.1], [10_000, 0.3]]
    assert processes.lines[0].get_xydata().tolist() == [[2, 0.1]]
    assert time.get_title() == "10 annotators\n3 classes"
    assert processes.get_title() == "1k labels, 10 annotators\n3 classes"
    memory = figures[0].axes[4]
    assert memory.lines[1].get_xydata().tolist() == [[1_000, 80]]
    assert memory.get_xlabel() == "labels"


def test_parts_without_rows_leave_their_panels_empty(tmp_path, figures):
    growth_figure.draw_growth([row("classes")], tmp_path / "growth")
    assert [len(axes.lines[0].get_xdata()) for axes in figures[0].axes[:4]] == [0, 0, 1, 0]
