"""Fitted models read back from the folders that `save` wrote."""

from __future__ import annotations

from pathlib import Path

from annotrace.aggregation.base import Aggregation
from annotrace.aggregation.registry import AGGREGATIONS
from annotrace.aggregation.saving import read_run
from annotrace.errors import RunError
from annotrace.methods.base import CrowdEstimator
from annotrace.methods.recipe import Recipe
from annotrace.methods.registry import METHODS
from annotrace.networks import Backbone


def load(
    folder: str | Path, *, backbone: Backbone | None = None, device: str = "auto"
) -> CrowdEstimator | Aggregation:
    """Read a fitted classifier or aggregation back from the folder that `save` wrote.

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
    folder = Path(folder)
    run = read_run(folder)
    params, method = dict(run.description["params"]), run.description["method"]
    if run.description["kind"] == "aggregation":
        aggregation = AGGREGATIONS.make(method, **params)
        aggregation.restore(run)
        return aggregation
    if isinstance(params.get("recipe"), dict):
        params["recipe"] = Recipe(**params["recipe"])
    if run.description["custom_backbone"]:
        if backbone is None:
            raise RunError(
                f"{folder}: trained with a network of its own; give it as load(..., backbone=...)."
            )
        params["backbone"] = backbone
    model = METHODS.make(method, **params, device=device)
    try:
        model.restore(run)
    except RuntimeError as error:
        if backbone is None:
            raise
        reason = str(error).splitlines()[0]
        raise RunError(
            f"{folder}: trained with another network than `backbone`: {reason}"
        ) from None
    return model
