"""Results that look as if a plan had been run, without running it, and a check of drawing them."""

import re
from xml.etree import ElementTree

import numpy as np

from annotrace.diagnosis import confusion_error, is_diagonally_dominant, skills
from annotrace.experiments import find_experiment
from annotrace.experiments.cardiac import cardiac_annotators
from annotrace.experiments.options import Options
from annotrace.experiments.plans import make_plan
from annotrace.experiments.simulated import true_confusion

MODELLED = {"trace": 0.01, "no-trace": 0.03, "mbem": 0.1, "gem": 0.4, "crossfit": 0.02}
VERSIONS = {"annotrace": "0.0", "python": "3", "torch": "2.x", "numpy": "2"}


def made_up(run):
    """A line of results.jsonl: the further a method's matrices are from the truth, the worse."""
    if run["crowd"] == "cardiac":
        truth = cardiac_annotators()
    else:
        truth = true_confusion(run["crowd"], run["skill"], run["seed"])
    n_classes = truth.shape[1]
    correct = float(skills(truth).mean())
    off = MODELLED.get(run["method"])
    result = {
        **{name: value for name, value in run.items() if name != "keep"},
        "n_items": run["n_items"] or 1000,
        "n_classes": n_classes,
        "annotator_accuracy": correct,
        "dominant": is_diagonally_dominant(truth),
        "true_skills": skills(truth).tolist(),
        "accuracy": max(0.1, 0.99 - (off or 0.3) * (1 - correct) - 0.001 * run["seed"]),
        "posterior_accuracy": 0.9,
        "cm_error": None,
        "label_nll": 1.5,
        "held_out": 1.6,
        "seconds": 2.0,
        "selection": "likelihood",
        "device": "cpu",
        "versions": VERSIONS,
    }
    if off is not None:
        estimate = (1 - off) * truth + off * np.eye(n_classes)
        result |= {
            "cm_error": confusion_error(estimate, truth),
            "skills": skills(estimate).tolist(),
            "mean_confusion": estimate.mean(axis=0).tolist(),
        }
        if "confusion" in run["keep"]:
            result["confusion"] = estimate.tolist()
    if run["method"] == "annotators":
        result["confusion"] = truth.tolist()
    elif "curve" in run["keep"]:
        ends = 0.99 - 0.002 * run["settings"].get("n_steps", 0)
        result["curve"] = [[216 * (k + 1), ends - 0.5 * 0.8**k] for k in range(93)]
    return result


def planned(name, **options):
    """The runs of an experiment."""
    return make_plan(find_experiment(name), Options(**options))


def check_drawn(name, pictures, folder, **options):
    """Draw an experiment from made-up results, whole and unfinished; return the page."""
    experiment = find_experiment(name)
    results = [made_up(run) for run in planned(name, **options)]
    unfinished = folder / "unfinished"
    unfinished.mkdir()
    assert experiment.draw(results[-1:], unfinished)
    whole = folder / "whole"
    whole.mkdir()
    written = experiment.draw(results, whole)
    assert {path.name for path in whole.iterdir()} == {path.name for path in written}
    assert {path.stem for path in written if path.suffix == ".svg"} == pictures
    for picture in pictures:
        ElementTree.parse(whole / f"{picture}.svg")
        assert (whole / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
    page = (whole / f"{name}.md").read_text()
    assert "Protocol *fast*" in page
    blocks = [block for block in re.split(r"\n\n", page) if block.startswith("|")]
    widths = [{line.count("|") for line in block.splitlines()} for block in blocks]
    assert widths
    assert all(len(width) == 1 for width in widths)
    return page
