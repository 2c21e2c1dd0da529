"""Multilayer perceptron: dense hidden layers of any widths with tanh or relu, then logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from worker.engine.networks.activations import activation
from worker.engine.networks.initial import initial_weights
from worker.engine.networks.stack import DenseStack
from worker.engine.results import NetworkSpec


def build(
    spec: NetworkSpec,
    feature_names: Sequence[str],
    outputs: int,
    runs: int,
    seed: int,
    *,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> DenseStack:
    """A stack of perceptrons of the widths in ``spec.hidden``."""
    layers = initial_weights(feature_names, (*spec.hidden, outputs), seed)
    return DenseStack(layers, activation(spec.activation), runs, device=device, dtype=dtype)
