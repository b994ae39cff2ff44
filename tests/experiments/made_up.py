"""Results that look as if a plan had been run, without running it."""

import numpy as np

from annotrace.diagnosis import confusion_error, is_diagonally_dominant, skills
from annotrace.experiments.crowds import confusion_of
from annotrace.experiments.runs import find_method

MODELLED = {"trace": 0.01, "no-trace": 0.03, "mbem": 0.1, "gem": 0.4, "crossfit": 0.02}
VERSIONS = {"annotrace": "0.0", "python": "3", "torch": "2.x", "numpy": "2"}


def made_up(run):
    """A line of results.jsonl: the further a method's matrices are from the truth, the worse."""
    truth = confusion_of(run)
    n_classes = truth.shape[1]
    right = float(skills(truth).mean())
    off = MODELLED.get(run.method)
    result = {
        "key": run.key,
        "experiment": run.experiment,
        "data": run.data,
        "method": run.method,
        "crowd": run.crowd,
        "skill": run.skill,
        "density": run.density,
        "seed": run.seed,
        "protocol": run.protocol,
        "settings": dict(run.settings),
        "n_items": run.n_items or 1000,
        "n_classes": n_classes,
        "annotator_accuracy": right,
        "dominant": is_diagonally_dominant(truth),
        "true_skills": skills(truth).tolist(),
        "accuracy": max(0.1, 0.99 - (off or 0.3) * (1 - right) - 0.001 * run.seed),
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
        if "confusion" in run.keep:
            result["confusion"] = estimate.tolist()
    if run.method == "annotators":
        result["confusion"] = truth.tolist()
    elif "curve" in run.keep:
        epochs = find_method(run.method)[0](**run.settings).epochs
        ends = 0.99 - 0.002 * run.settings.get("steps", 0)
        result["curve"] = [[216 * (k + 1), ends - 0.5 * 0.8**k] for k in range(epochs)]
    return result
