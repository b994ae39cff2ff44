"""What each experiment plans, and that each can be drawn from results alone."""

import json
import re
from xml.etree import ElementTree

import pytest
from made_up import made_up

from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.registry import EXPERIMENTS, find_experiment
from annotrace.experiments.runs import find_method

PICTURES = {
    "mnist-em": {"figure-3", "figure-9"},
    "mnist-robust": {"figure-6", "figure-10"},
    "mnist-ablation": {"figure-11"},
    "mnist-dominance": {"figure-4"},
    "mnist-sensitivity": {"figure-5"},
    "annotators": {"figure-8"},
    "cifar10-table": {"figure-2"},
    "cardiac": {"figure-7a", "figure-7b", "figure-7c"},
    "digits": {"digits"},
}
TRAINED_AS_PUBLISHED = [(name, "paper") for name in EXPERIMENTS if name != "annotators"]
ONE_DRAW = ("mnist-sensitivity", "annotators")
SWEEPS = ("mnist-em", "mnist-robust", "mnist-ablation")


def counted(name, **options):
    return len(make_plan(find_experiment(name), Options(**options)))


@pytest.mark.parametrize(
    ("name", "protocol"), [*((name, "fast") for name in EXPERIMENTS), *TRAINED_AS_PUBLISHED]
)
def test_every_setting_of_a_plan_is_one_that_its_method_takes(name, protocol):
    for run in make_plan(find_experiment(name), Options(protocol=protocol)):
        if run.method != "annotators":
            find_method(run.method)[0](**run.settings)
        assert json.loads(json.dumps(dict(run.settings))) == run.settings


def test_plans_have_the_runs_that_the_figures_need():
    # Eight skills, both densities: flippers three times for the trace, once for other methods, and
    # spammers once.
    assert counted("mnist-em") == 8 * 2 * (3 + 1 + 3 * (1 + 1))
    assert counted("mnist-em", seeds=2, skills=(0.3,), methods=("mbem",)) == 2 * 2 * 2
    assert counted("mnist-robust", densities=(1,)) == 8 * (3 + 1 + 4 * (1 + 1))
    assert counted("mnist-ablation") == 8 * 2 * (3 + 1) * 2
    assert counted("mnist-dominance") == 2 * 3
    assert counted("mnist-sensitivity") == 3 + 2 * 4
    assert counted("annotators") == 2
    assert counted("cardiac") == 3 * 7
    assert counted("cifar10-table", methods=("trace", "vanilla")) == 2 * 3 * 2


def test_experiments_share_the_runs_that_they_have_in_common():
    keys = {
        name: {run.key for run in make_plan(find_experiment(name), Options())}
        for name in ("mnist-em", "mnist-robust", "mnist-ablation", "mnist-dominance")
    }
    assert keys["mnist-dominance"] <= keys["mnist-em"]
    assert len(keys["mnist-em"] & keys["mnist-robust"]) == 8 * 2 * (3 + 1)
    assert len(keys["mnist-em"] & keys["mnist-ablation"]) == 8 * 2 * (3 + 1)


def test_the_paper_protocol_is_the_published_recipe():
    paper = Options(protocol="paper")
    for run in make_plan(find_experiment("cifar10-table"), paper):
        estimator = find_method(run.method)[0](**run.settings)
        if run.method == "crossfit":
            continue
        settings = estimator._settings(0)
        assert (settings.epochs, settings.batch_size, settings.lr) == (200, 50, 1e-3)
        assert [settings.rate(epoch) for epoch in (49, 50, 100)] == pytest.approx([1, 0.1, 0.01])
        assert (estimator.backbone, estimator.validation) == ("resnet50", 0.1)
        assert estimator.select == "truth"
        if run.method == "trace":
            assert (estimator.lam, estimator._or_protocol("confusion_lr")) == (0.01, 1.0)
        if run.method in ("mbem", "gem"):
            assert estimator.steps == 2


def test_where_the_paper_is_silent_a_flag_decides():
    options = Options(protocol="paper", select="labels", vanilla_decay=5e-4)
    runs = make_plan(find_experiment("mnist-robust"), options)
    assert {run.settings["select"] for run in runs} == {"labels"}
    decays = {run.method: run.settings.get("weight_decay") for run in runs}
    assert decays["vanilla"] == 5e-4
    assert decays["trace"] is None


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_is_drawn_from_results_alone(name, tmp_path):
    experiment = find_experiment(name)
    skills = (0.25, 0.3, 0.9) if name in SWEEPS else ()
    options = Options(skills=skills, seeds=1 if name in ONE_DRAW else 2)
    results = [made_up(run) for run in make_plan(experiment, options)]
    written = experiment.draw(results, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in written}
    for picture in PICTURES[name]:
        ElementTree.parse(tmp_path / f"{picture}.svg")
        assert (tmp_path / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / f"{name}.md").read_text()
    assert "Protocol *fast*" in page
    widths = [
        {line.count("|") for line in block.splitlines()}
        for block in re.split(r"\n\n", page)
        if block.startswith("|")
    ]
    assert widths
    assert all(len(width) == 1 for width in widths)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_unfinished_sweep_can_be_drawn(name, tmp_path):
    experiment = find_experiment(name)
    plan = make_plan(experiment, Options())
    assert experiment.draw([made_up(plan[-1])], tmp_path)


def test_diagonals_are_called_so(tmp_path):
    # Spammers of a mean skill of .5 guess a tenth of the rest: their diagonals are .55.
    experiment = find_experiment("annotators")
    experiment.draw([made_up(run) for run in make_plan(experiment, Options())], tmp_path)
    page = (tmp_path / "annotators.md").read_text()
    assert "| group | mean skill | mean diagonals |" in page
    assert "| hammer-spammers | 0.5 | 0.55" in page


def test_equal_results_give_equal_files(tmp_path):
    experiment = find_experiment("annotators")
    results = [made_up(run) for run in make_plan(experiment, Options())]
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        experiment.draw(results, tmp_path / folder)
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("one", "two")
    )
    assert one == two
