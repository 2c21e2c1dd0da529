"""What a single cell says: a plain number, a number in another notation, or one of the texts that stand for nothing."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

PLAIN_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""Digits with an optional decimal point and exponent. ``007`` is not one: its zeros would be lost."""

# fmt: off
SUSPECTED_CODES = frozenset([
    "na", "n/a", "n.a.", "null", "none", "nan", "nil", "-", "--", "---", ".", "..", "...", "?", "??", "*", "#",
    "#n/a", "#n/d", "#null!", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "unknown", "unk", "missing",
    "not available", "not applicable", "not stated", "undefined", "blank", "(blank)", "(empty)", "unbekannt", "k.a.",
    "keine angabe", "inconnu", "desconocido", "sconosciuto", "onbekend", "refused", "don't know",
])
# fmt: on
"""Texts that often stand for a missing cell, in small letters. They are proposed, and only taken where a number was meant."""

SUSPECTED_NUMBERS = frozenset([-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0])
"""Numbers that often stand for a missing cell where they lie apart from all others. They are only ever proposed."""

_EXACT = 2**53
_CURRENCY = r"[$€£¥₹₽₩₺₴₪฿]|USD|EUR|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD|BRL|ZAR|kr|zł|Fr\.?"
_UNIT = re.compile(
    rf"(?P<sign>[+\-\u2212])?\s*(?P<before>{_CURRENCY})?\s*(?P<number>[^\s%]?[^%]*?)\s*(?P<after>{_CURRENCY}|%)?"
)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}(?P<mark>[,.'\u2019 \u00a0\u202f])[0-9]{3}(?:(?P=mark)[0-9]{3})*")


@dataclass(frozen=True)
class Number:
    """A number as it was written: ``thousands`` is the mark between groups of digits, ``unit`` what stood beside it."""

    value: float
    thousands: str = ""
    unit: str = ""


def plain_number(text: str) -> float | None:
    """The number that ``text`` writes plainly, or None: ``1,234``, ``12 %``, ``nan``, ``007`` are not plain numbers.

    Whole numbers of 2**53 and above and numbers that overflow are texts too, since digits would be lost.
    """
    if not PLAIN_NUMBER.fullmatch(text):
        return None
    value = float(text)
    if not math.isfinite(value) or (abs(value) >= _EXACT and text.lstrip("+-").isdigit()):
        return None
    return value


def parse_number(text: str, decimal: str) -> Number | None:
    """The number that ``text`` writes with this decimal sign, with thousands marks, a currency or a percent sign at most."""
    text = text.strip()
    if not text or len(text) > 60 or not any(letter.isdigit() for letter in text):
        return None
    plain = plain_number(_with_point(text, decimal)) if text.isascii() else None
    if plain is not None:
        return Number(plain)
    found = _UNIT.fullmatch(text)
    if found is None or (found["before"] and found["after"]):
        return None
    unit, digits = found["before"] or found["after"] or "", found["number"]
    if found["sign"] and digits.startswith(("+", "-")):
        return None
    mark, digits = _without_thousands(digits, decimal)
    value = plain_number(_with_point(digits, decimal))
    if value is None or not (unit or mark or found["sign"]):
        return None
    return Number(-value if found["sign"] in ("-", "\u2212") else value, mark, unit)


def _with_point(text: str, decimal: str) -> str:
    if decimal == ".":
        return text
    return "" if "." in text else text.replace(decimal, ".", 1)


def _without_thousands(digits: str, decimal: str) -> tuple[str, str]:
    """The mark between groups of three digits, and the digits without it; no mark where there is none."""
    sign = digits[:1] if digits[:1] in "+-" else ""
    whole, point, rest = digits[len(sign) :].partition(decimal)
    found = _THOUSANDS.fullmatch(whole)
    if found is None or found["mark"] == decimal:
        return "", digits
    return found["mark"], sign + whole.replace(found["mark"], "") + point + rest


def is_suspected_code(text: str) -> bool:
    """Whether a text often stands for a missing cell."""
    return text.strip().casefold() in SUSPECTED_CODES
