"""What can be chosen: made from the engine's catalogue, so that a new entry there appears here by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter

from backend.catalogue.schemas import Catalogue
from backend.edge import Asker
from worker.engine import catalogue
from worker.engine.methods.base import OPTIMIZERS
from worker.engine.params import ACTIVATIONS, Param

router = APIRouter(prefix="/api/v1/catalogue", tags=["catalogue"])


@router.get("", summary="What can be chosen", response_model=Catalogue)
def whole(_: Asker) -> dict[str, Any]:
    """Methods, metrics, networks, optimizers, activations, diagnostics and formats, each with key, title, help and
    parameters."""
    return {
        "methods": [
            entry(method) | {"private": method.private, "uses_groups": method.uses_groups}
            for method in catalogue.METHODS
        ],
        "metrics": [entry(metric) | {"better": metric.better} for metric in catalogue.METRICS],
        "networks": [entry(network) for network in catalogue.NETWORKS],
        "optimizers": [
            entry(one) | {"learning_rate": one.learning_rate, "baseline_learning_rate": one.baseline_learning_rate}
            for one in OPTIMIZERS
        ],
        "activations": [entry(one) for one in ACTIVATIONS],
        "diagnostics": [],
        "formats": [entry(form) for form in catalogue.FORMATS],
    }


def entry(item: Any) -> dict[str, Any]:
    """Key, title, help and parameters of anything in the catalogue."""
    parameters: Iterable[Param] = getattr(item, "params", ())
    return {
        "key": item.key,
        "title": item.title,
        "help": item.help,
        "parameters": [parameter(found) for found in parameters],
    }


def parameter(found: Param) -> dict[str, Any]:
    """A parameter; an open end of its range is null."""
    return {
        "key": found.key,
        "title": found.title,
        "help": found.help,
        "default": found.default,
        "low": found.low if math.isfinite(found.low) else None,
        "high": found.high if math.isfinite(found.high) else None,
        "integer": found.integer,
        "at_least": found.at_least,
    }
