"""The axis that all charts over epsilon share: logarithmic, fixed ticks, weaker privacy to the right, no DP apart."""

from __future__ import annotations

from collections.abc import Iterable
from math import log10
from typing import Any

from frontend.charts.theme import PAPERS, Tone

TICKS = (0.1, 0.3, 1.0, 3.0, 10.0)
MORE_TICKS = (30.0, 100.0)
RIGHT = 0.90
APART = 0.925
"""Share of the width where the epsilon axis ends and where the broken-off column "no DP" begins."""

LABEL_SHARE = 0.30
"""Share of the epsilon axis kept free at its left for the labels of the lines."""


def epsilon_range(spent: Iterable[float], *, labels: bool) -> tuple[float, float]:
    """Ends of the axis as powers of ten: the fixed ticks, all points, and room for labels at the left."""
    logs = [log10(value) for value in spent if value > 0] or [0.0]
    high = max(1.0, *logs) + 0.06
    low = min(-1.0, *logs) - 0.06
    if labels:
        start = min(logs)
        low = min(low, (start - 0.04 - LABEL_SHARE * high) / (1 - LABEL_SHARE))
    return low, high


def ticks(high: float) -> tuple[float, ...]:
    """The fixed ticks, and 30 and 100 where points lie there."""
    return TICKS + tuple(tick for tick in MORE_TICKS if log10(tick) <= high)


def epsilon_axes(low: float, high: float, tone: Tone, *, narrow: bool) -> dict[str, Any]:
    """The two x axes: epsilon spent, and the one place of the model without DP."""
    paper = PAPERS[tone]
    shown = ticks(high)
    common = {"showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "outside", "tickcolor": paper.edge}
    return {
        "xaxis": {
            **common,
            "type": "log",
            "range": [low, high],
            "domain": [0.0, 0.84 if narrow else RIGHT],
            "tickvals": list(shown),
            "ticktext": [f"{tick:g}" for tick in shown],
            "title": {
                "text": "privacy: epsilon spent" if narrow else "epsilon spent",
                "standoff": 26 if narrow else 8,
                "font": {"size": 13},
            },
            "linecolor": paper.edge,
            "showline": True,
        },
        "xaxis2": {
            **common,
            "range": [-1, 1],
            "domain": [0.88 if narrow else APART, 1.0],
            "tickvals": [0],
            "ticktext": ["no DP"],
            "anchor": "y",
            "linecolor": paper.edge,
            "showline": True,
        },
    }


def end_words(tone: Tone, *, narrow: bool) -> list[dict[str, Any]]:
    """Words and arrows at both ends of the axis."""
    quiet = {"size": 13, "color": PAPERS[tone].quiet}
    common = {
        "xref": "x domain",
        "yref": "paper",
        "y": 0,
        "yanchor": "top",
        "yshift": -24 if narrow else -28,
        "showarrow": False,
        "font": quiet,
    }
    return [
        {**common, "x": 0, "xanchor": "left", "text": "← stronger" if narrow else "← stronger privacy"},
        {**common, "x": 1, "xanchor": "right", "text": "weaker →" if narrow else "weaker privacy →"},
    ]
