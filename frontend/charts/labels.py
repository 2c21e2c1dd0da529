"""Direct labels at line ends, moved apart so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence


def apart(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Heights moved as little as needed so that neighbours lie at least ``gap`` apart, within [low, high].

    Order is kept. If there is not enough room they are spread evenly.
    """
    count = len(heights)
    if not count:
        return []
    gap = min(gap, (high - low) / max(count - 1, 1))
    order = sorted(range(count), key=lambda at: heights[at])
    blocks: list[list[float]] = []  # one [sum of wished first heights, members] a block of touching labels
    for rank, at in enumerate(order):
        blocks.append([heights[at] - rank * gap, 1.0])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] > blocks[-1][0] / blocks[-1][1]:
            total, members = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += members
    first = [total / members for total, members in blocks for _ in range(int(members))]
    ceiling = high - (count - 1) * gap
    placed = [min(max(value, low), ceiling) + rank * gap for rank, value in enumerate(first)]
    result = [0.0] * count
    for at, height in zip(order, placed, strict=True):
        result[at] = height
    return result
