import pytest
from made_up import check_drawn, made_up, planned

from annotrace.experiments import cifar10
from annotrace.experiments.settings import effective, make_estimator
from annotrace.training import Settings


def page_of(results, folder):
    cifar10.draw(results, folder)
    return (folder / "cifar10-table.md").read_text()


def test_runs_are_those_that_the_table_needs():
    assert len(planned("cifar10-table", methods=("trace", "vanilla"))) == 2 * 3 * 2


def test_figure_and_page_are_drawn_from_results(tmp_path):
    check_drawn("cifar10-table", {"figure-2"}, tmp_path, seeds=2)


def test_the_paper_protocol_is_the_published_recipe():
    for run in planned("cifar10-table", protocol="paper"):
        if run["method"] == "crossfit":
            continue
        model = make_estimator(run["method"], run["settings"])
        names = ("epochs", "batch_size", "lr", "schedule")
        settings = Settings(**{name: effective(model, name) for name in names})
        assert (settings.epochs, settings.batch_size, settings.lr) == (200, 50, 1e-3)
        assert [settings.rate(epoch) for epoch in (49, 50, 100)] == pytest.approx([1, 0.1, 0.01])
        assert (model.backbone, model.validation_fraction, model.select) == (
            "resnet50",
            0.1,
            "truth",
        )
        if run["method"] == "trace":
            assert (model.lam, effective(model, "confusion_lr")) == (0.01, 1.0)
        if run["method"] in ("mbem", "gem"):
            assert model.n_steps == 2


def test_the_papers_numbers_stand_beside_ours_in_both_units(tmp_path):
    results = [made_up(run) for run in planned("cifar10-table", methods=("trace", "vanilla"))]
    for seed, result in enumerate(results):
        result["accuracy"] = 0.88 + 0.01 * (seed // 2 % 3)
    page = page_of(results, tmp_path)
    dense, single = (line for line in page.splitlines() if line.startswith("| trace |"))
    assert "| 81.23 ± 0.21 | 89.00 ± 1.00 | 0.72 ± 0.01 | 7.2 |" in dense
    assert "| 77.65 ± 0.31 | 89.00 ± 1.00 | 1.22 ± 0.01 | 12.2 |" in single
    assert "| MBEM | 73.33 ± 0.46 |  | 2.53 ± 0.24 | 25.3 |  |  |" in page
    assert "table 1 cannot follow it" in page
