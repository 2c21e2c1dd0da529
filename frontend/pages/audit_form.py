"""The form of a new audit: fields from the catalogue, the body of ``POST audits`` from fields, errors to fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from worker.engine import catalogue
from worker.engine.audits.question import BASELINE
from worker.engine.methods.base import OPTIMIZERS, TRAINING_PARAMS
from worker.engine.params import ACTIVATIONS, Param


@dataclass(frozen=True)
class Preset:
    """How many seeds, and what that is good for."""

    seeds: int
    title: str
    help: str


PRESETS = (
    Preset(5, "Quick look", "Enough to see large costs."),
    Preset(10, "Standard", "Narrower intervals, for a decision."),
    Preset(20, "Publication", "For numbers that others will rely on."),
)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
NETWORK = "mlp"
HIDDEN = "64"


DELTA = "Left empty, {}the largest power of ten not above 1 / (10 n)."


@dataclass(frozen=True)
class FormParam:
    """A parameter as a field of the form; ``name`` is its dotted path in the request.

    ``start`` is what the field holds at first: nothing where the default depends on the optimizer, which ``help`` says.
    """

    name: str
    title: str
    help: str
    low: float
    high: float
    start: str
    integer: bool


@dataclass(frozen=True)
class MethodSettings:
    """The fields of one method."""

    key: str
    title: str
    params: tuple[FormParam, ...]


def training_fields() -> list[FormParam]:
    """What all runs share, or all but the baseline."""
    return [
        _field(f"training.{param.key}", param, [kind.learning_rate for kind in OPTIMIZERS]) for param in TRAINING_PARAMS
    ]


def method_settings() -> list[MethodSettings]:
    """The fields of each method, in the order of the catalogue."""
    rates = [kind.baseline_learning_rate for kind in OPTIMIZERS]
    found = []
    for method in catalogue.METHODS:
        fields = (_field(f"parameters.{method.key}.{param.key}", param, rates) for param in method.params)
        found.append(MethodSettings(method.key, method.title, tuple(fields)))
    return [settings for settings in found if settings.params]


def form_params() -> list[FormParam]:
    """Training parameters, then those of each method."""
    return [*training_fields(), *(param for settings in method_settings() for param in settings.params)]


def _field(name: str, param: Param, rates: list[float]) -> FormParam:
    told, start = param.help, f"{param.default:g}"
    if param.key == "learning_rate":
        each = [f"{rate:g} with {kind.title}" for rate, kind in zip(rates, OPTIMIZERS, strict=True)]
        told, start = f"{told} Left empty: {', '.join(each)}.", ""
    return FormParam(name, param.title, told, param.low, param.high, start, param.integer)


def start_values() -> dict[str, Any]:
    """The form before anybody touched it: good defaults."""
    values: dict[str, Any] = {
        "preset": str(PRESETS[0].seeds),
        "methods": [method.key for method in catalogue.METHODS if method.private][:1],
        "epsilons": " ".join(f"{epsilon:g}" for epsilon in EPSILONS),
        "network.kind": NETWORK,
        "network.hidden": HIDDEN,
        "network.activation": ACTIVATIONS[0].key,
        "training.optimizer": OPTIMIZERS[0].key,
        "delta": "",
        "other_seeds": "",
        "name": "",
    }
    return values | {param.name: param.start for param in form_params()}


def posted_values(form: Any) -> dict[str, Any]:
    """The form as it was sent, so that it can be shown again."""
    start = start_values()
    values = {name: str(form.get(name, start[name])) for name in start if name != "methods"}
    return values | {"methods": [str(key) for key in form.getlist("methods")]}


def body_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The body of ``POST audits``. What is no number stays text and is refused at its field."""
    methods = [BASELINE, *(key for key in values["methods"] if key != BASELINE)]
    seeds = values["other_seeds"].strip() or values["preset"]
    network: dict[str, Any] = {"kind": values["network.kind"]}
    if values["network.kind"] != "logistic":
        network["hidden"] = [number(piece, whole=True) for piece in pieces(values["network.hidden"])]
        network["activation"] = values["network.activation"]
    body: dict[str, Any] = {
        "methods": methods,
        "epsilons": [number(piece) for piece in pieces(values["epsilons"])],
        "seeds": number(seeds, whole=True),
        "network": network,
        "training": {"optimizer": values["training.optimizer"]},
    }
    if values["delta"].strip():
        body["delta"] = number(values["delta"])
    if values["name"].strip():
        body["name"] = values["name"].strip()
    _add_params(body, values, methods)
    return body


def _add_params(body: dict[str, Any], values: Mapping[str, Any], methods: list[str]) -> None:
    for param in form_params():
        text = values[param.name].strip()
        if not text:
            continue
        group, _, rest = param.name.partition(".")
        if group == "training":
            body["training"][rest] = number(text, whole=param.integer)
        else:
            method, _, key = rest.rpartition(".")
            if method in methods:
                body.setdefault("parameters", {}).setdefault(method, {})[key] = number(text, whole=param.integer)


def pieces(text: str) -> list[str]:
    """The parts of a field that holds several numbers. A comma inside a piece stays: 1,5 may mean 1.5, so it is refused."""
    return [piece.rstrip(",") for piece in re.split(r"[\s;]+", text.strip()) if piece.rstrip(",")]


def number(text: str, *, whole: bool = False) -> Any:
    """The number that a person wrote, or their text where it is none."""
    tidy = text.strip().replace("\u2212", "-")
    try:
        value = float(tidy)
    except ValueError:
        return text.strip()
    return int(value) if whole and value.is_integer() and abs(value) < 2**53 else value


def field_errors(errors: Any) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Errors by field of the form, and those that no field is at fault for."""
    known = {*start_values(), "seeds", "methods"}
    placed: dict[str, str] = {}
    stray = []
    for error in errors:
        path, message = str(error.get("field", "")), str(error.get("message", ""))
        name = re.sub(r"\[\d+\].*$", "", path)
        if name == "seeds":
            name = "other_seeds"
        if name == "network":
            name = "network.kind"
        if name in known:
            placed[name] = f"{placed[name]} {message}" if name in placed and message not in placed[name] else message
        else:
            stray.append({"field": path, "message": message})
    return placed, stray


def catalogue_fields() -> dict[str, Any]:
    """What the form offers, from the catalogue."""
    return {
        "presets": PRESETS,
        "methods": catalogue.METHODS,
        "baseline": BASELINE,
        "networks": catalogue.NETWORKS,
        "activations": [(one.key, one.title) for one in ACTIVATIONS],
        "optimizers": [(one.key, one.title) for one in OPTIMIZERS],
        "training": training_fields(),
        "settings": method_settings(),
    }
