"""How numbers, times and names are set on the page. Every filter of the templates is here."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from frontend.charts.base import epsilon_text

NONE = "—"
STATES = {
    "received": "being read",
    "profiled": "read",
    "refused": "refused",
    "erased": "erased",
    "planning": "finding the noise",
    "queued": "waiting",
    "running": "training",
    "finished": "finished",
    "stopped": "stopped",
    "failed": "failed",
}
"""States as a reader meets them."""


def count(value: Any) -> str:
    """A whole number with thin separators; a dash where there is none. The length of a list counts too."""
    if isinstance(value, list | tuple):
        value = len(value)
    return f"{value:,}" if isinstance(value, int | float) else NONE


def percent(share: float | None) -> str:
    """A share as percent with one decimal."""
    return NONE if share is None else f"{share * 100:.1f} %"


def points(share: float | None) -> str:
    """A difference of shares in percentage points."""
    return NONE if share is None else f"{share * 100:.1f}"


def figure(value: float | None) -> str:
    """A number at three or four significant figures, without a needless exponent."""
    if value is None:
        return NONE
    if value == int(value) and abs(value) < 1e9:
        return true_minus(f"{int(value):,}")
    return true_minus(small(f"{value:.4g}"))


def small(text: str) -> str:
    """A power of ten without its leading zero: 1e-6, not 1e-06."""
    return re.sub(r"(?<=\de-)0(?=\d)", "", text)


def true_minus(text: str) -> str:
    """Text in which a hyphen before a figure is a minus."""
    return re.sub(r"(?<![\w)\]-])-(?=\d)", "\u2212", text)


def epsilon(value: float | None) -> str:
    """An epsilon that was asked for, or no DP."""
    return "no DP" if value is None else f"{value:g}"


def size(count_of_bytes: float | None) -> str:
    """Bytes in the unit that reads best."""
    if count_of_bytes is None:
        return NONE
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count_of_bytes >= step:
            return f"{count_of_bytes / step:.3g} {unit}"
    return f"{int(count_of_bytes)} bytes"


def span(seconds: float | None) -> str:
    """A duration, rounded as an estimate deserves."""
    if seconds is None:
        return "for an unknown time"
    if seconds < 50:
        tens = max(5, round(seconds / 5) * 5)
        return f"about {tens} seconds"
    if seconds < 90 * 60:
        minutes = max(1, round(seconds / 60))
        return f"about {minutes} {'minute' if minutes == 1 else 'minutes'}"
    hours = seconds / 3600
    return f"about {hours:.0f} hours" if hours < 48 else f"about {hours / 24:.0f} days"


def moment(value: Any) -> str:
    """Date and time in UTC."""
    found = _time(value)
    return NONE if found is None else f"{found.day} {found:%b %Y, %H:%M} UTC"


def day(value: Any) -> str:
    """A date."""
    found = _time(value)
    return NONE if found is None else f"{found.day} {found:%B %Y}"


def _time(value: Any) -> datetime | None:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.astimezone(UTC) if isinstance(value, datetime) else None


def shorten(text: str, most: int = 60) -> str:
    """Text cut to a length, with a mark that it was."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shown(text: str) -> str:
    """A value as a reader can tell it from others: in quotes where it begins or ends with a space, with a word if empty."""
    if text == "":
        return "(empty)"
    return f"“{text}”" if text != text.strip() else text


def slug(text: Any) -> str:
    """A name as an id of an element."""
    return re.sub(r"[^A-Za-z0-9]+", "-", str(text)).strip("-").lower() or "x"


def ticks(text: str) -> Markup:
    """Text in which `back ticks` mark names of columns; everything else is escaped."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped just before


def listed(items: list[str], last: str = "and") -> str:
    """Words in a row: a, b and c."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def epsilon_span(epsilons: list[float]) -> str:
    """The grid of an audit in short."""
    if not epsilons:
        return NONE
    low, high = min(epsilons), max(epsilons)
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


FILTERS = {
    "count": count,
    "percent": percent,
    "points": points,
    "figure": figure,
    "epsilon": epsilon,
    "spent": epsilon_text,
    "size": size,
    "span": span,
    "moment": moment,
    "day": day,
    "shorten": shorten,
    "shown": shown,
    "slug": slug,
    "ticks": ticks,
}
