"""Small tables and stacks for the tests of the engine; nothing here is computed by what is tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from worker.engine.networks.initial import initial_weights
from worker.engine.results import EncodedData, GroupRows, NetworkSpec, RunSpec, StackSpec, TrainingSize


def make_data(n: int = 200, d: int = 7, classes: int = 2, *, seed: int = 0, parts: bool = True) -> EncodedData:
    """Rows with a linear signal; row ids have holes, as after rows were left out."""
    generator = np.random.default_rng(seed)
    features = generator.uniform(0, 1, (n, d)).astype(np.float32)
    scores = features @ generator.normal(size=(d, classes)) + 0.3 * generator.normal(size=(n, classes))
    labels = scores.argmax(1).astype(np.int64)
    codes = np.where(np.arange(n) % 5 < 3, 0, np.where(np.arange(n) % 5 == 3, 1, 2)).astype(np.int8)
    member = generator.random(n) < 0.4
    ids = np.arange(n, dtype=np.int64) * 2 + 1
    return EncodedData(
        features=features,
        labels=labels,
        classes=classes,
        parts=codes if parts else np.zeros(n, np.int8),
        row_ids=ids,
        unit_ids=ids,
        universe=2 * n + 2,
        groups=(
            GroupRows("everyone", np.ones(n, bool)),
            GroupRows("sex=a", member),
            GroupRows("sex=b", ~member),
        ),
        feature_names=tuple(f"feature {number}" for number in range(d)),
        training_groups=(~member).astype(np.int64),
        training_group_count=2,
    )


def make_spec(
    data: EncodedData,
    runs: Sequence[tuple[str, float, Mapping[str, float]]] = (("non-private", 0.0, {"learning_rate": 0.5}),),
    *,
    kind: str = "mlp",
    hidden: tuple[int, ...] = (6,),
    activation: str = "tanh",
    batch_size: int = 20,
    epochs: int = 2,
    threads: int = 1,
    optimizer: str = "sgd",
) -> StackSpec:
    """A stack of (method, noise multiplier, parameters)."""
    units = len(np.unique(data.unit_ids[data.parts == 0]))
    specs = tuple(
        RunSpec(
            f"run{position}", method, 0, None if method == "non-private" else 1.0, noise, 500 + position, parameters
        )
        for position, (method, noise, parameters) in enumerate(runs)
    )
    return StackSpec(
        runs=specs,
        network=NetworkSpec(kind, hidden, activation),  # type: ignore[arg-type] # tests pass plain strings
        size=TrainingSize(units, batch_size, epochs),
        weight_seed=11,
        batch_seed=12,
        kernel="eager-cpu",
        threads=threads,
        optimizer=optimizer,  # type: ignore[arg-type] # tests pass plain strings
    )


def initial(spec: StackSpec, data: EncodedData) -> list[np.ndarray]:
    """Weights before the first step, layer by layer."""
    outputs = 1 if data.classes == 2 else data.classes
    hidden = spec.network.hidden if spec.network.kind == "mlp" else ()
    return initial_weights(data.feature_names, (*hidden, outputs), spec.weight_seed)
