"""What can be chosen, as REST shows it."""

from __future__ import annotations

from pydantic import BaseModel


class Parameter(BaseModel):
    """A number that a person may set."""

    key: str
    title: str
    help: str
    default: float
    low: float | None
    high: float | None
    integer: bool
    at_least: str | None = None


class Entry(BaseModel):
    """One method, metric, network, diagnostic or format."""

    key: str
    title: str
    help: str
    parameters: list[Parameter] = []


class MethodEntry(Entry):
    """``private`` is false for a method that gives no guarantee; ``uses_groups`` is true for one that looks at a
    protected attribute while it trains."""

    private: bool
    uses_groups: bool


class OptimizerEntry(Entry):
    """The learning rates that are used where none is given: of the private runs and references, and the baseline."""

    learning_rate: float
    baseline_learning_rate: float


class MetricEntry(Entry):
    """``better`` is null for a metric without direction; its difference is a change, not a cost."""

    better: str | None


class Catalogue(BaseModel):
    """Everything that can be chosen, in the order of the screen."""

    methods: list[MethodEntry]
    metrics: list[MetricEntry]
    networks: list[Entry]
    optimizers: list[OptimizerEntry]
    activations: list[Entry]
    diagnostics: list[Entry]
    formats: list[Entry]
