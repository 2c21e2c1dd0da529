"""The slow, obvious way: one network, one example, one gradient at a time. It judges the fast way, sharing no code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from worker.engine.results import EncodedData, NetworkSpec


def make_network(spec: NetworkSpec, layers: Sequence[np.ndarray], dtype: torch.dtype = torch.float64) -> nn.Sequential:
    """An ordinary torch network with these weights, each (inputs + 1, outputs) with the bias last."""
    modules: list[nn.Module] = []
    for number, layer in enumerate(layers):
        if number:
            modules.append(nn.Tanh() if spec.activation == "tanh" else nn.ReLU())
        linear = nn.Linear(layer.shape[0] - 1, layer.shape[1]).to(dtype)
        with torch.no_grad():
            linear.weight.copy_(torch.as_tensor(layer[:-1].T))
            linear.bias.copy_(torch.as_tensor(layer[-1]))
        modules.append(linear)
    return nn.Sequential(*modules)


def loss_of(network: nn.Module, data: EncodedData, row: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Cross-entropy of one row."""
    scores = network(torch.as_tensor(data.features[row : row + 1], dtype=dtype))
    label = torch.as_tensor(data.labels[row : row + 1])
    if data.classes == 2:
        return nn.functional.binary_cross_entropy_with_logits(scores[:, 0], label.to(dtype))
    return nn.functional.cross_entropy(scores, label)


def gradient(network: nn.Module, data: EncodedData, row: int, dtype: torch.dtype = torch.float64) -> np.ndarray:
    """Flat gradient of one row's loss, in the order in which a run's noise is laid out."""
    network.zero_grad()
    loss_of(network, data, row, dtype).backward()
    return flat([parameter.grad for parameter in network.parameters()])


def flat(tensors: Sequence[torch.Tensor | None]) -> np.ndarray:
    """Weight and bias of each layer as one vector: for each layer, inputs by outputs, the bias last."""
    parts = []
    for weight, bias in zip(tensors[::2], tensors[1::2], strict=True):
        assert weight is not None
        assert bias is not None
        parts += [weight.detach().numpy().T.reshape(-1), bias.detach().numpy().reshape(-1)]
    return np.concatenate(parts)


def clipped(vector: np.ndarray, clip: float) -> np.ndarray:
    """Shortened to the clip where longer; zero where not finite."""
    norm = np.linalg.norm(vector)
    if not np.isfinite(norm):
        return np.zeros_like(vector)
    return vector * min(1.0, clip / norm) if norm > 0 else vector


def move(network: nn.Module, step: np.ndarray) -> None:
    """Subtract a flat step from the weights."""
    at = 0
    with torch.no_grad():
        parameters = list(network.parameters())
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            part = step[at : at + weight.numel()].reshape(weight.shape[1], weight.shape[0]).T
            weight -= torch.as_tensor(np.ascontiguousarray(part))
            at += weight.numel()
            bias -= torch.as_tensor(step[at : at + bias.numel()])
            at += bias.numel()


def weights(network: nn.Module) -> np.ndarray:
    return flat(list(network.parameters()))


def of_run(tensors: Sequence[torch.Tensor], run: int) -> np.ndarray:
    """One run's share of tensors shaped like a stack's parameters, flat."""
    parts = [tensors[0][:, run].reshape(-1)] + [tensor[run].reshape(-1) for tensor in tensors[1:]]
    return torch.cat(parts).double().numpy()
