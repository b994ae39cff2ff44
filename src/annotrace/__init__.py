"""Learn from labels that annotators disagree on.

>>> import annotrace as at
>>> train, test = at.data.load_digits().split(600)
>>> crowd = at.simulate.hammer_spammers(5, 10, skill=0.6, random_state=0)
>>> table = at.simulate.simulate_labels(train.y, crowd, labels_per_item=2, random_state=0)
>>> model = at.CrowdClassifier(random_state=0).fit(train.X, table)
>>> bool(model.score(test.X, test.y) > 0.9)
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from annotrace.version import __version__

if TYPE_CHECKING:
    from annotrace import (
        aggregation,
        crowd,
        data,
        diagnosis,
        errors,
        judges,
        labels,
        methods,
        nn,
        plots,
        simulate,
    )
    from annotrace.allocation import allocate
    from annotrace.labels import LabelTable
    from annotrace.limits import Limits
    from annotrace.methods import (
        AnnotMix,
        COINNet,
        CoNAL,
        CrossFittedEM,
        CrowdClassifier,
        CrowdLayer,
        GeneralizedEM,
        GeoCrowdLayer,
        ItemDependentEM,
        MaDL,
        ModelBootstrappedEM,
        Oracle,
        Recipe,
        SingleConfusion,
        SoftBootstrap,
        TraceRegularized,
        TwoStage,
        UnionNet,
        Vanilla,
        WeightedDoctorNet,
        label_likelihood_scorer,
        list_methods,
        load,
        make,
        truth_accuracy_scorer,
    )
    from annotrace.report import write_report

__all__ = [
    "AnnotMix",
    "COINNet",
    "CoNAL",
    "CrossFittedEM",
    "CrowdClassifier",
    "CrowdLayer",
    "GeneralizedEM",
    "GeoCrowdLayer",
    "ItemDependentEM",
    "LabelTable",
    "Limits",
    "MaDL",
    "ModelBootstrappedEM",
    "Oracle",
    "Recipe",
    "SingleConfusion",
    "SoftBootstrap",
    "TraceRegularized",
    "TwoStage",
    "UnionNet",
    "Vanilla",
    "WeightedDoctorNet",
    "__version__",
    "aggregation",
    "allocate",
    "crowd",
    "data",
    "diagnosis",
    "errors",
    "judges",
    "label_likelihood_scorer",
    "labels",
    "list_methods",
    "load",
    "make",
    "methods",
    "nn",
    "plots",
    "simulate",
    "truth_accuracy_scorer",
    "write_report",
]

# Imported on first use, so that the command line can answer `--help` without importing torch.
_MODULES = (
    "aggregation",
    "crowd",
    "data",
    "diagnosis",
    "errors",
    "judges",
    "labels",
    "methods",
    "nn",
    "plots",
    "simulate",
)
_HOMES = {
    "LabelTable": "annotrace.labels",
    "Limits": "annotrace.limits",
    "allocate": "annotrace.allocation",
    "write_report": "annotrace.report",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"annotrace.{name}")
    if name in __all__:
        home = importlib.import_module(_HOMES.get(name, "annotrace.methods"))
        return getattr(home, name)
    raise AttributeError(f"module 'annotrace' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
