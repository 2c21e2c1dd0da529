"""Every method the slow, obvious way: one example, one autograd gradient at a time, in float64. Shares no code with the
engine but the drawn batches and noise, which are handed in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from tests.engine import judge
from worker.engine.results import EncodedData

Values = Mapping[str, float]


@dataclass
class Slow:
    """One run: its network, and whatever its method remembers. ``denominator`` is the expected batch size."""

    network: torch.nn.Module
    data: EncodedData
    values: Values
    denominator: float
    sigma: float
    side: Callable[[], np.ndarray]
    memory: dict[str, object] = field(default_factory=dict)

    @property
    def clip(self) -> float:
        return float(self.values["clip"])

    def gradients(self, batch: np.ndarray) -> list[np.ndarray]:
        return [judge.gradient(self.network, self.data, int(row)) for row in batch]

    def norms(self, batch: np.ndarray) -> list[float]:
        return [float(np.linalg.norm(gradient)) for gradient in self.gradients(batch)]

    def zero(self) -> np.ndarray:
        return np.zeros(sum(parameter.numel() for parameter in self.network.parameters()))

    def group(self, row: int) -> int:
        return int(self.data.training_groups[row])


Method = Callable[[Slow, np.ndarray], tuple[np.ndarray, float]]
"""(run, batch) -> sum of scaled gradients, and what the unit noise of the sum is multiplied by."""


def non_private(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    return sum(run.gradients(batch), run.zero()), 0.0


def dp_sgd(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    return sum((judge.clipped(g, run.clip) for g in run.gradients(batch)), run.zero()), run.clip


def adaptive(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    clip = float(run.memory.setdefault("clip", run.clip))
    total = sum((judge.clipped(g, clip) for g in run.gradients(batch)), run.zero())
    bits = sum((1.0 if norm <= clip else 0.0) - 0.5 for norm in run.norms(batch))
    noisy = bits + 0.5 * float(run.side()[0])
    share = min(1.0, max(0.0, noisy / run.denominator + 0.5))
    run.memory["clip"] = clip * math.exp(-run.values["adaptation"] * (share - run.values["quantile"]))
    return total, clip


def by_group(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    groups = run.data.training_group_count
    above, below = [0.0] * groups, [0.0] * groups
    for row, norm in zip(batch, run.norms(batch), strict=True):
        (above if norm > run.clip else below)[run.group(row)] += 1
    noise = run.side()
    above = [max(0, math.floor(count + noise[k])) for k, count in enumerate(above)]
    below = [max(0, math.floor(count + noise[groups + k])) for k, count in enumerate(below)]
    shares = [a / (a + b) if a + b else 1.0 for a, b in zip(above, below, strict=True)]
    clips = [run.clip * (1 + share / (sum(shares) / groups + 1e-8)) for share in shares]
    pairs = zip(batch, run.gradients(batch), strict=True)
    return sum((judge.clipped(g, clips[run.group(row)]) for row, g in pairs), run.zero()), max(clips)


def drop_above(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    bound = max(run.values["bound"], run.clip)
    kept = [g for g in run.gradients(batch) if np.linalg.norm(g) <= bound]
    return run.clip / bound * sum(kept, run.zero()), run.clip


def scale_below(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    bound = float(run.memory.setdefault("bound", max(run.values["bound"], run.clip)))
    total = sum((run.clip * g / max(np.linalg.norm(g), bound) for g in run.gradients(batch)), run.zero())
    count = sum(norm > run.values["tolerance"] * bound for norm in run.norms(batch)) + float(run.side()[0])
    moved = bound * math.exp(-run.values["adaptation"] + count / run.denominator)
    run.memory["bound"] = min(max(moved, run.clip), 1e4)
    return total, run.clip


def magnitude(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    whole, short = non_private(run, batch)[0], dp_sgd(run, batch)[0]
    return whole * (np.linalg.norm(short) / np.linalg.norm(whole)) if whole.any() else whole, 0.0


def direction(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    whole, short = non_private(run, batch)[0], dp_sgd(run, batch)[0]
    return short * (np.linalg.norm(whole) / np.linalg.norm(short)) if short.any() else whole, 0.0


def _flat(tensors) -> torch.Tensor:
    pairs = zip(tensors[::2], tensors[1::2], strict=True)
    return torch.cat([part for weight, bias in pairs for part in (weight.t().reshape(-1), bias.reshape(-1))])


def _loss_gradient(run: Slow, row: int) -> torch.Tensor:
    """Differentiable once more."""
    loss = judge.loss_of(run.network, run.data, row)
    return _flat(torch.autograd.grad(loss, list(run.network.parameters()), create_graph=True))


def _probabilities(run: Slow, row: int) -> torch.Tensor:
    scores = run.network(torch.as_tensor(run.data.features[row : row + 1], dtype=torch.float64))[0]
    return torch.softmax(torch.cat([torch.zeros_like(scores), scores]) if len(scores) == 1 else scores, 0)


def _gradient_of(run: Slow, value: torch.Tensor) -> np.ndarray:
    found = torch.autograd.grad(value, list(run.network.parameters()), allow_unused=True)
    pairs = zip(found, run.network.parameters(), strict=True)
    return _flat([torch.zeros_like(p) if g is None else g for g, p in pairs]).detach().numpy()


def lens(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    """Each record's loss is written out with the constants of the last release and differentiated."""
    groups, classes, numbers = run.data.training_group_count, run.data.classes, len(run.zero())
    reach, b = run.values["reach"] * run.clip, run.denominator
    plain = {int(row): judge.gradient(run.network, run.data, int(row)) for row in batch}
    sums, chances, sizes = np.zeros((groups, numbers)), np.zeros((groups, classes)), np.zeros(groups)
    for row in batch:
        sums[run.group(row)] += judge.clipped(plain[int(row)], reach) / reach
        chances[run.group(row)] += _probabilities(run, row).detach().numpy()
        sizes[run.group(row)] += 1
    total = run.zero()
    for row in batch:
        gradient = plain[int(row)]
        if "last" in run.memory:
            gradient = _gradient_of(run, _lens_loss(run, int(row)))
        total += judge.clipped(gradient, run.clip)
    noise = run.side()
    h = (sums.reshape(-1) + noise[: groups * numbers]).reshape(groups, numbers) * reach
    f = (chances.reshape(-1) + noise[groups * numbers : groups * (numbers + classes)]).reshape(groups, classes)
    size = np.maximum(sizes + noise[-groups:], 0.1 * b / groups)
    run.memory["last"] = (h, np.clip(f / size[:, None], 0, 1), size)
    return total, run.clip


def _lens_loss(run: Slow, row: int) -> torch.Tensor:
    h, f, size = run.memory["last"]
    b, reach = run.denominator, run.values["reach"] * run.clip
    whole = h.sum(0) / b
    error = run.memory["released"] / b - whole
    error = error * min(1.0, reach / np.linalg.norm(error))
    signs = [math.copysign(1.0, (h[k] / size[k] - whole) @ error) for k in range(len(h))]
    k = run.group(row)
    pull = run.values["alignment"] * (signs[k] * b / size[k] - sum(signs))
    own = _probabilities(run, row)
    boundary = -0.5 * run.values["boundary"] * b / size[k] * (torch.as_tensor(f[k]) * own).sum()
    return (
        judge.loss_of(run.network, run.data, row)
        + pull * (_loss_gradient(run, row) @ torch.as_tensor(error))
        + boundary
    )


def lens_original(run: Slow, batch: np.ndarray) -> tuple[np.ndarray, float]:
    """The batch's regulariser, differentiated as a whole; clip factors are constants."""
    noise = run.values["noise_multiplier"] * run.clip
    if not len(batch):
        return run.zero(), noise
    live = {int(row): _loss_gradient(run, int(row)) for row in batch}
    factors = {row: min(1.0, run.clip / float(g.detach().norm())) for row, g in live.items()}
    present = sorted({run.group(row) for row in batch})
    rows = {k: [int(row) for row in batch if run.group(row) == k] for k in present}
    whole = sum(live.values()) / len(batch)
    error = sum(factors[row] * g for row, g in live.items()) / len(batch) - whole
    first = sum(((sum(live[row] for row in rows[k]) / len(rows[k]) - whole) @ error).abs() for k in present)
    means = [sum(_probabilities(run, row) for row in rows[k]) / len(rows[k]) for k in present]
    second = 0.25 * sum(1 - (mean**2).sum() for mean in means)
    common = _gradient_of(run, run.values["alignment"] * first + run.values["boundary"] * second)
    return sum((judge.clipped(g + common, run.clip) for g in run.gradients(batch)), run.zero()), noise


REFERENCES: dict[str, Method] = {
    "non-private": non_private,
    "dp-sgd": dp_sgd,
    "dp-sgd-adaptive": adaptive,
    "dp-sgd-f": by_group,
    "fairness-lens": lens,
    "dp-sgd-global": drop_above,
    "dp-sgd-global-adapt": scale_below,
    "fairness-lens-original": lens_original,
    "magnitude-error": magnitude,
    "direction-error": direction,
}
