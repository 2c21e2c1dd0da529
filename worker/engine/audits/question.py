"""The question of an audit: methods x epsilons x seeds with the training settings, checked field by field."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

from worker.engine.methods.base import MOMENTUM, OPTIMIZERS, TRAINING_PARAMS, Method
from worker.engine.params import ACTIVATIONS, Choice, NetworkKind, OptimizerKind, Param
from worker.engine.results import Activation, FieldError, NetworkSpec, Optimizer, TrainingSize

BASELINE = "non-private"
LOWEST_EPSILON, HIGHEST_EPSILON = 0.01, 100.0
MOST_EPSILONS = 100
MOST_SEEDS = 1000
MOST_LAYERS, WIDEST_LAYER = 4, 1024
SMALLEST_DELTA = 1e-12
"""Below this the numerical accountants lose their footing; it is far below 1/n of any table that can be read."""

DEFAULT_SEEDS = 5
DEFAULT_EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
_SAME_EPSILON = 1e-6
_SHARED = ("learning_rate", "clip")
_KNOWN = ("dataset", "name", "methods", "epsilons", "delta", "seeds", "network", "training", "parameters")
_DERIVED = "references"
_LATER = ("tuning", "public_share")


@dataclass(frozen=True)
class Question:
    """One question about one dataset, every default filled in.

    Attributes:
        methods: the private ones; the baseline always trains too.
        training: epochs, batch_size, learning_rate and clip; the last two are not those of the baseline.
        parameters: complete values by method, the baseline's among them.
        references: methods that claim no privacy and so have no epsilon: one run a seed each.
    """

    methods: tuple[str, ...]
    epsilons: tuple[float, ...]
    delta: float
    seeds: int
    network: NetworkSpec
    training: Mapping[str, float]
    parameters: Mapping[str, Mapping[str, float]]
    optimizer: Optimizer = "sgd"
    references: tuple[str, ...] = ()

    @property
    def points(self) -> tuple[tuple[str, float | None], ...]:
        """Method and epsilon of the runs of one seed: the baseline, the private ones, then the references."""
        private = [(method, epsilon) for method in self.methods for epsilon in self.epsilons]
        return ((BASELINE, None), *private, *((method, None) for method in self.references))

    @property
    def runs(self) -> int:
        return self.seeds * len(self.points)

    def size(self, units: int) -> TrainingSize:
        """The public constants of training on this many units."""
        return TrainingSize(units, int(self.training["batch_size"]), int(self.training["epochs"]))

    def to_json(self) -> dict[str, Any]:
        """As stored, and as a body that asks the same question again (with a dataset)."""
        network = {
            "kind": self.network.kind,
            "hidden": list(self.network.hidden),
            "activation": self.network.activation,
        }
        return {
            "methods": [*self.methods, *self.references],
            "references": list(self.references),
            "epsilons": list(self.epsilons),
            "delta": self.delta,
            "seeds": self.seeds,
            "network": network,
            "training": {**self.training, "optimizer": self.optimizer},
            "parameters": {method: dict(values) for method, values in self.parameters.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Question:
        """The question that ``to_json`` gave."""
        network, references = stored["network"], tuple(stored.get("references", ()))
        return cls(
            methods=tuple(method for method in stored["methods"] if method not in references),
            epsilons=tuple(float(epsilon) for epsilon in stored["epsilons"]),
            delta=float(stored["delta"]),
            seeds=int(stored["seeds"]),
            network=NetworkSpec(network["kind"], tuple(network["hidden"]), network.get("activation", "tanh")),
            training={key: value for key, value in stored["training"].items() if key != "optimizer"},
            parameters=stored["parameters"],
            optimizer=stored["training"].get("optimizer", "sgd"),
            references=references,
        )


_Offer = TypeVar("_Offer", bound=Choice)


def default_delta(units: int) -> float:
    """The largest power of ten not above 1 / (10 n)."""
    digits = len(str(10 * units - 1)) if units > 0 else 1
    return float(f"1e-{digits}")


def check_question(
    body: Mapping[str, Any],
    *,
    summary: Mapping[str, Any],
    methods: Sequence[Method],
    networks: Sequence[NetworkKind],
    run_limit: int,
) -> tuple[Question | None, tuple[FieldError, ...]]:
    """The question asked by the body of ``POST /audits``; or None and every error found, each at its field.

    Nothing is laid out before the number of runs is known to be within ``run_limit``. ``summary`` is the recipe's.
    """
    return _Check(body, summary, methods, networks).result(run_limit)


class _Check:
    def __init__(
        self,
        body: Mapping[str, Any],
        summary: Mapping[str, Any],
        methods: Sequence[Method],
        networks: Sequence[NetworkKind],
    ) -> None:
        self.body, self.units = body, int(summary["units"])
        self.methods = {method.key: method for method in methods}
        self.networks = {network.key: network for network in networks}
        self.errors: list[FieldError] = []

    def result(self, run_limit: int) -> tuple[Question | None, tuple[FieldError, ...]]:
        for key in self.body:
            if key not in (*_KNOWN, _DERIVED) and not (key in _LATER and self.body[key] is None):
                later = "This cannot be asked for yet. Leave it out." if key in _LATER else "This field is not known."
                self.wrong(str(key), later)
        (chosen, references), epsilons, seeds = self.chosen(), self.epsilons(), self.seeds()
        if chosen and epsilons and seeds:
            self.check_runs(seeds * (1 + len(references) + len(chosen) * len(epsilons)), run_limit)
        optimizer = self.optimizer()
        training, network = self.training(optimizer), self.network()
        parameters = self.parameters((*chosen, *references), training, optimizer)
        delta = self.delta()
        if self.errors or network is None or delta is None or seeds is None:
            return None, tuple(self.errors)
        key = cast(Optimizer, optimizer.key)
        return Question(chosen, epsilons, delta, seeds, network, training, parameters, key, references), ()

    def wrong(self, name: str, message: str) -> None:
        self.errors.append(FieldError(name, message))

    def given(self, key: str, default: Any) -> Any:
        """What the body says; the default only where it says nothing, so that `[]` or `""` is an error, not a silence."""
        value = self.body.get(key)
        return default if value is None else value

    def chosen(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The private methods asked for, and the references. Naming the baseline changes nothing: it always trains."""
        found = self.named()
        private = tuple(key for key in found if self.methods[key].private)
        references = tuple(key for key in found if not self.methods[key].private and key != BASELINE)
        if not private and not self.errors:
            self.wrong("methods", "Name a method that claims privacy; the baseline trains in any case.")
        stored = self.body.get(_DERIVED)
        if stored is not None and stored != list(references):
            self.wrong(_DERIVED, "This follows from the methods. Leave it out.")
        return private, references

    def named(self) -> list[str]:
        """Methods that are named, each once."""
        wanted = self.body.get("methods")
        if not isinstance(wanted, list | tuple) or not wanted:
            self.wrong("methods", "Give a list of at least one method.")
            return []
        if len(wanted) > 2 * len(self.methods):
            self.wrong("methods", "More methods are named than there are. Name each once.")
            return []
        found: list[str] = []
        for place, key in enumerate(wanted):
            if not isinstance(key, str) or key not in self.methods:
                known = ", ".join(self.methods)
                self.wrong(f"methods[{place}]", f"There is no method of this name. There are: {known}.")
            elif key in found:
                self.wrong(f"methods[{place}]", "This method is named twice. Name each once.")
            else:
                found.append(key)
        return found

    def epsilons(self) -> tuple[float, ...]:
        wanted = self.body.get("epsilons", list(DEFAULT_EPSILONS))
        if not isinstance(wanted, list | tuple) or not wanted:
            self.wrong("epsilons", "Give a list of at least one epsilon.")
            return ()
        if len(wanted) > MOST_EPSILONS:
            self.wrong("epsilons", f"{len(wanted)} epsilons are more than {MOST_EPSILONS}. Give fewer.")
            return ()
        rule = Param("epsilon", "Epsilon", "", 1.0, LOWEST_EPSILON, HIGHEST_EPSILON)
        found: list[float] = []
        for place, epsilon in enumerate(wanted):
            problem = _number_problem(rule, epsilon)
            if problem is None and any(math.isclose(float(epsilon), other, rel_tol=_SAME_EPSILON) for other in found):
                problem = "This epsilon is given twice. Give each once."
            if problem is None:
                found.append(float(epsilon))
            else:
                self.wrong(f"epsilons[{place}]", problem)
        return tuple(sorted(found))

    def seeds(self) -> int | None:
        value = self.body.get("seeds", DEFAULT_SEEDS)
        rule = Param("seeds", "The number of seeds", "", DEFAULT_SEEDS, 1, MOST_SEEDS, integer=True)
        problem = _number_problem(rule, value)
        if problem is not None:
            self.wrong("seeds", problem)
            return None
        return int(value)

    def check_runs(self, runs: int, run_limit: int) -> None:
        if runs > run_limit:
            message = f"This is {runs} runs, more than the {run_limit} of one audit. Ask for fewer seeds, epsilons or methods."
            self.wrong("seeds", message)

    def delta(self) -> float | None:
        value = self.body.get("delta")
        if value is None:
            return default_delta(self.units)
        problem = _number_problem(Param("delta", "Delta", "", 1e-5, SMALLEST_DELTA, 1.0), value)
        if problem is None and float(value) >= 1 / self.units:
            problem = f"Delta must be below 1 / {self.units}, else whole rows may be given away. Leave it out for the default."
        if problem is not None:
            self.wrong("delta", problem)
            return None
        return float(value)

    def optimizer(self) -> OptimizerKind:
        """The one asked for; plain SGD where nothing is said, or nothing that is known."""
        wanted = self.given("training", {})
        key = wanted.get("optimizer") if isinstance(wanted, Mapping) else None
        found = _choice(OPTIMIZERS, "sgd" if key is None else key)
        if found is None:
            self.wrong("training.optimizer", _unknown(OPTIMIZERS))
        return found or OPTIMIZERS[0]

    def training(self, optimizer: OptimizerKind) -> dict[str, float]:
        wanted = self.given("training", {})
        rules = {rule.key: rule for rule in TRAINING_PARAMS}
        rules["learning_rate"] = replace(rules["learning_rate"], default=optimizer.learning_rate)
        if not isinstance(wanted, Mapping):
            self.wrong("training", "Must give epochs, batch_size, learning_rate and clip.")
            wanted = {}
        values = self.values("training", {k: v for k, v in wanted.items() if k != "optimizer"}, rules)
        if values["batch_size"] > self.units:
            if "batch_size" in wanted:
                self.wrong("training.batch_size", f"Must not exceed the {self.units} units of the training part.")
            values["batch_size"] = self.units
        return values

    def values(self, place: str, wanted: Mapping[str, Any], rules: Mapping[str, Param]) -> dict[str, float]:
        """A value for every rule: the given one if it is in order, else the default and an error."""
        found = {key: rule.default for key, rule in rules.items()}
        for key, value in wanted.items():
            if key not in rules:
                self.wrong(f"{place}.{key}", f"There is no such setting. There are: {', '.join(rules) or 'none'}.")
                continue
            problem = _number_problem(rules[key], value)
            if problem is not None:
                self.wrong(f"{place}.{key}", problem)
            else:
                found[key] = int(value) if rules[key].integer else float(value)
        return found

    def network(self) -> NetworkSpec | None:
        wanted = self.given("network", {"kind": "mlp"})
        if not isinstance(wanted, Mapping):
            self.wrong("network", "Must give a kind and hidden widths.")
            return None
        for key in wanted:
            if key not in ("kind", "hidden", "activation"):
                self.wrong(f"network.{key}", "There is no such setting. There are: kind, hidden, activation.")
        kind = wanted.get("kind")
        if not isinstance(kind, str) or kind not in self.networks:
            self.wrong("network.kind", f"There is no such network. There are: {', '.join(self.networks)}.")
            return None
        hidden = self.hidden(wanted.get("hidden"), self.networks[kind])
        key = wanted.get("activation")
        activation = _choice(ACTIVATIONS, "tanh" if key is None else key)
        if activation is None:
            self.wrong("network.activation", _unknown(ACTIVATIONS))
        if hidden is None or activation is None:
            return None
        return NetworkSpec(kind, hidden, cast(Activation, activation.key))

    def hidden(self, wanted: Any, network: NetworkKind) -> tuple[int, ...] | None:
        if wanted is None:
            return network.hidden
        if not isinstance(wanted, list | tuple):
            self.wrong("network.hidden", "Must be a list of widths.")
        elif not network.hidden and wanted:
            self.wrong("network.hidden", f"{network.title} has no hidden layers. Leave it empty.")
        elif network.hidden and not 1 <= len(wanted) <= MOST_LAYERS:
            self.wrong("network.hidden", f"Must name one to {MOST_LAYERS} hidden layers.")
        else:
            rule = Param("width", "A width", "", 64, 1, WIDEST_LAYER, integer=True)
            problems = {place: _number_problem(rule, width) for place, width in enumerate(wanted)}
            for place, problem in problems.items():
                if problem is not None:
                    self.wrong(f"network.hidden[{place}]", problem)
            if not any(problems.values()):
                return tuple(int(width) for width in wanted)
        return None

    def parameters(
        self, chosen: tuple[str, ...], training: Mapping[str, float], optimizer: OptimizerKind
    ) -> dict[str, dict[str, float]]:
        """Complete values of each method that trains; all but the baseline start from the shared learning rate and
        clip."""
        wanted = self.given("parameters", {})
        if not isinstance(wanted, Mapping):
            self.wrong("parameters", "Must give settings by method.")
            wanted = {}
        for key in wanted:
            if key not in (BASELINE, *chosen):
                self.wrong(f"parameters.{key}", "This method is not in the audit.")
        return {key: self.values_of(key, wanted.get(key, {}), training, optimizer) for key in (BASELINE, *chosen)}

    def values_of(
        self, key: str, given: Any, training: Mapping[str, float], optimizer: OptimizerKind
    ) -> dict[str, float]:
        """Complete values of one method."""
        method, place, shares = self.methods[key], f"parameters.{key}", key != BASELINE
        rules = {rule.key: rule for rule in TRAINING_PARAMS if shares and rule.key in _SHARED}
        rules |= {rule.key: rule for rule in method.params}
        if not shares:
            rules["learning_rate"] = replace(rules["learning_rate"], default=optimizer.baseline_learning_rate)
        if not isinstance(given, Mapping):
            self.wrong(place, "Must give settings by name.")
            given = {}
        shared = {name: training[name] for name in _SHARED if shares and name not in given}
        found = self.values(place, given, rules) | shared
        for rule in method.params:
            if rule.at_least is not None and found[rule.key] < found[rule.at_least]:
                least = found[rule.at_least]
                self.wrong(f"{place}.{rule.key}", f"{rule.title} must be at least the {rule.at_least}, {least:g}.")
        if optimizer.key != "sgd" and found.get(MOMENTUM.key):
            self.wrong(f"{place}.{MOMENTUM.key}", f"{optimizer.title} has a memory of its own. Leave momentum at 0.")
        return found


def _choice(offered: Sequence[_Offer], key: object) -> _Offer | None:
    return next((one for one in offered if one.key == key), None)


def _unknown(offered: Sequence[Choice]) -> str:
    return f"There is no such choice. There are: {', '.join(one.key for one in offered)}."


def _number_problem(rule: Param, value: object) -> str | None:
    """As ``Param.problem``, also for whole numbers too large for a float."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**300:
        return f"{rule.title} must lie between {rule.low:g} and {rule.high:g}."
    return rule.problem(value)
