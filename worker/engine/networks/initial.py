"""Initial weights. Those of the first layer belong to the names of the features, so that moving a column moves its
weights."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def initial_weights(feature_names: Sequence[str], widths: Sequence[int], seed: int) -> list[NDArray[np.float64]]:
    """Weights of each layer, shape (inputs + 1, outputs), the last row the bias, uniform in +-1/sqrt(inputs).

    Args:
        feature_names: one an input of the first layer.
        widths: outputs of each layer, first to last.
        seed: the same seed gives the same weights to every run that starts from it.
    """
    layers, inputs = [], len(feature_names)
    for number, outputs in enumerate(widths):
        names = feature_names if number == 0 else [str(position) for position in range(inputs)]
        bound = 1.0 / math.sqrt(max(1, inputs))
        rows = [_row(seed, f"{number}|weight|{name}", outputs) for name in names]
        rows.append(_row(seed, f"{number}|bias", outputs))
        layers.append(bound * np.stack(rows))
        inputs = outputs
    return layers


def _row(seed: int, purpose: str, outputs: int) -> NDArray[np.float64]:
    digest = hashlib.blake2b(f"{seed}|{purpose}".encode(), digest_size=16).digest()
    generator = np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype=np.uint64)))
    return generator.uniform(-1.0, 1.0, outputs)
