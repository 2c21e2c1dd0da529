"""The rows of a table as tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from worker.engine.results import EncodedData


@dataclass(frozen=True)
class Rows:
    """Rows as tensors.

    ``features`` (n, d + 1) end in a one; a row that is not finite is zeroed, and its ``squares`` (n,), kept from
    before, are not finite, so that its gradient counts as not finite and becomes zero. ``targets`` (n, outputs): the
    label, or one-hot. ``groups`` (n,): the training group.
    """

    features: Tensor
    squares: Tensor
    targets: Tensor
    groups: Tensor

    @classmethod
    def of(cls, data: EncodedData, device: str, dtype: torch.dtype, outputs: int | None = None) -> Rows:
        """``outputs`` of the network: one for two classes where nothing else is said."""
        features = torch.as_tensor(data.features, device=device, dtype=dtype)
        features = torch.cat([features, features.new_ones(len(features), 1)], 1)
        squares = features.square().sum(1)
        features[~features.isfinite().all(1)] = 0.0
        labels = torch.as_tensor(data.labels, device=device)
        single = data.classes == 2 if outputs is None else outputs == 1
        targets = labels[:, None] if single else torch.nn.functional.one_hot(labels, data.classes)
        groups = torch.zeros_like(labels)
        if data.training_groups is not None:
            groups = torch.as_tensor(data.training_groups, device=device)
        return cls(features, squares, targets.to(dtype), groups)
