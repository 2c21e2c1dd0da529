"""The paper's network for two classes has two logits and a softmax, where ours has one and a sigmoid: its gradients are
longer in the last layer, and its steps too. Only the replication needs it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from worker.engine.networks.activations import activation
from worker.engine.networks.initial import initial_weights
from worker.engine.networks.stack import DenseStack
from worker.engine.params import NetworkKind
from worker.engine.results import NetworkSpec

TWO_LOGITS = NetworkKind("two-logits", "Two logits", "As in the papers.", (256, 256), "tests.privacy.two_logits")


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
    """A stack of perceptrons with a logit for each of two classes."""
    layers = initial_weights(feature_names, (*spec.hidden, max(outputs, 2)), seed)
    return DenseStack(layers, activation(spec.activation), runs, device=device, dtype=dtype)
