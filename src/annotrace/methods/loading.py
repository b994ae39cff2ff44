"""Fitted models read back from the folders that `save` wrote."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from torch import nn

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.registry import AGGREGATIONS
from annotrace.aggregation.run_reader import damaged, read_run
from annotrace.aggregation.run_schema import NEVER_SAVED, check_fields
from annotrace.errors import InputError, RunError, first_few
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.recipe import Recipe
from annotrace.methods.registry import METHODS
from annotrace.networks import Backbone
from annotrace.parameters import check_parameters, field_types
from annotrace.registry import Registry
from annotrace.training import pick_device


def load(
    folder: str | Path, *, backbone: Backbone | None = None, device: str = "auto"
) -> CrowdEstimator | Aggregation:
    """Read a fitted classifier or aggregation back from the folder that `save` wrote.

    A run may come from a stranger: it is checked in full before anything of it is used, and no code
    in it is ever executed.

    Parameters
    ----------
    folder : str or Path
    backbone : nn.Module, optional
        Required if the model was trained with your own module: a run holds weights, not code.
    device : str

    Raises
    ------
    RunError
        If the run is missing, damaged, or from another version.
    """
    pick_device(device)
    folder = Path(folder)
    run = read_run(folder)
    described = run.description
    is_classifier, otherwise = described["kind"] == "classifier", ""
    own: dict[str, Any] = {"device": device} if is_classifier else {}
    if described.get("custom_backbone"):
        own["backbone"] = _check_backbone(backbone, folder)
        otherwise = "trained with another network than `backbone`, or "
    registry: Registry[Any] = METHODS if is_classifier else AGGREGATIONS
    with damaged(folder, otherwise):
        model: CrowdEstimator | Aggregation = _make(
            registry, described["method"], described["params"], **own
        )
        model.restore(run)
    return model


def _check_backbone(backbone: Backbone | None, folder: Path) -> nn.Module:
    if not isinstance(backbone, nn.Module):
        raise RunError(
            f"{folder}: trained with a network of its own; give it as load(..., backbone=...)."
        )
    return backbone


def _make(registry: Registry[Any], method: str, params: dict[str, Any], **own: Any) -> Any:
    """Return an estimator with the parameters of a run, checked, and with some of the caller."""
    params = dict(params)
    known = signature(registry[method].factory).parameters.keys() - {*NEVER_SAVED, *own}
    unknown = sorted(params.keys() - known)
    if unknown:
        raise InputError(f"{method!r} has no parameters {first_few(unknown)} that a run can set.")
    if isinstance(params.get("recipe"), dict):
        check_fields(params["recipe"], field_types(Recipe))
        params["recipe"] = Recipe(**params["recipe"])
    model = registry.make(method, **params, **own)
    check_parameters(model)
    return model
