"""The only colours of the product, for pages and charts alike: a light and a dark paper, and one hue a method.

Hues of methods are those of Okabe and Ito, which stay apart for the colour-blind. Members of one family share a hue
and differ by dash. Groups never have a hue: they differ by the shape of their marks and by their label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["light", "dark"]

FONT = (
    'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", "Helvetica Neue", Arial, sans-serif'
)
"""One family for everything; figures are set tabular in CSS."""


@dataclass(frozen=True)
class Paper:
    """Colours of one tone. Text colours reach 4.5 : 1 on ``paper`` and ``wash``, ``edge`` and marks 3 : 1."""

    paper: str
    wash: str
    ink: str
    quiet: str
    hairline: str
    edge: str
    accent: str
    on_accent: str
    warning: str


PAPERS: dict[Tone, Paper] = {
    "light": Paper(
        paper="#ffffff",
        wash="#f5f5f2",
        ink="#1b1b1a",
        quiet="#5a5a56",
        hairline="#dcdcd7",
        edge="#868680",
        accent="#1d4f80",
        on_accent="#ffffff",
        warning="#9b2c1f",
    ),
    "dark": Paper(
        paper="#131414",
        wash="#1d1e1e",
        ink="#ececea",
        quiet="#aaaaa5",
        hairline="#343635",
        edge="#7d7d78",
        accent="#8fbbe6",
        on_accent="#131414",
        warning="#f5a097",
    ),
}


@dataclass(frozen=True)
class Hue:
    """Hue of one method on both papers, and the dash that tells it from its family."""

    light: str
    dark: str
    dash: str = "solid"

    def on(self, tone: Tone) -> str:
        return self.dark if tone == "dark" else self.light


_BLUE = ("#0072b2", "#3d9fd8")
_SKY = ("#2f8fc4", "#56b4e9")

HUES: dict[str, Hue] = {
    "non-private": Hue("#5a5a56", "#aaaaa5"),
    "dp-sgd": Hue(*_BLUE),
    "dp-sgd-adaptive": Hue(*_BLUE, dash="dash"),
    "dp-sgd-f": Hue("#b87800", "#e69f00"),
    "fairness-lens": Hue("#00875f", "#00b488"),
    "dp-sgd-global": Hue("#d55e00", "#ee7b26"),
    "dp-sgd-global-adapt": Hue("#b3608f", "#d68fb8"),
    "pate": Hue(*_SKY),
    "pate-soft": Hue(*_SKY, dash="dash"),
}
"""Hue of each method by key; a method that is not listed is drawn in ink."""

MARKS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "star", "hexagon")
"""Shapes by position of the group in its panel; adding ``-open`` makes the hollow twin."""


def hue(method: str, tone: Tone) -> str:
    """Colour of a method's marks."""
    found = HUES.get(method)
    return found.on(tone) if found else PAPERS[tone].ink


def dash(method: str) -> str:
    """Dash of a method's lines."""
    found = HUES.get(method)
    return found.dash if found else "dot"


def veil(colour: str, share: float) -> str:
    """``colour`` (#rrggbb) let through by ``share`` (0..1), as an rgba() colour."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share:g})"


def stylesheet() -> str:
    """The colours as CSS custom properties, light by default, dark by the system's wish, light again on paper."""
    names = ("paper", "wash", "ink", "quiet", "hairline", "edge", "accent", "on_accent", "warning")

    def block(tone: Tone) -> str:
        return "".join(f"--{name.replace('_', '-')}:{getattr(PAPERS[tone], name)};" for name in names)

    return (
        f":root{{color-scheme:light dark;--font:{FONT};{block('light')}}}\n"
        f"@media (prefers-color-scheme: dark){{:root{{{block('dark')}}}}}\n"
        f"@media print{{:root{{{block('light')}}}}}\n"
    )
