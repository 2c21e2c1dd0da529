"""Which values of a column look like spellings of one another. They are proposed to be merged, never merged unasked."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

MOST_VALUES = 1_000
"""Columns with more different values than this get no proposals: they are no groups."""


LONGEST_VALUE = 200
"""Nor do columns with longer values, which are free text."""


def looks_of(text: str) -> str:
    """What a reader would see, in small letters: composed, without invisible characters, outer spaces and full stop."""
    composed = unicodedata.normalize("NFKC", text)
    visible = "".join(letter for letter in composed if unicodedata.category(letter) != "Cf" or letter == "\u200d")
    return unicodedata.normalize("NFC", " ".join(visible.split()).casefold()).rstrip(".").strip()


def propose_merges(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Values that look like one, each set with the spelling to keep: ``{into, count, spellings: [{value, count}]}``.

    Those that look the same but for case, spaces, composition and invisible characters; and initials beside the one word
    they begin (``F`` and ``Female``), where every initial of the column has one.
    """
    if not 2 <= len(counts) <= MOST_VALUES or max(map(len, counts)) > LONGEST_VALUE:
        return []
    alike: dict[str, list[str]] = {}
    for value in counts:
        alike.setdefault(looks_of(value), []).append(value)
    for initial, word in _initials(alike).items():
        alike[word] += alike.pop(initial)
    found = []
    for values in alike.values():
        if len(values) > 1:
            ordered = sorted(values, key=lambda value: (-counts[value], value))
            into = max(ordered, key=lambda value: (_tidiness(value), counts[value]))
            spellings = [{"value": value, "count": counts[value]} for value in ordered]
            found.append({"into": into, "count": sum(counts[value] for value in values), "spellings": spellings})
    return sorted(found, key=lambda merge: -merge["count"])


def _initials(alike: Mapping[str, list[str]]) -> dict[str, str]:
    initials = [key for key in alike if len(key) == 1 and key.isalpha()]
    words = [key for key in alike if len(key) > 1]
    pairs = {one: [word for word in words if word.startswith(one) and word.isalpha()] for one in initials}
    if len(alike) > 20 or any(len(found) != 1 for found in pairs.values()):
        return {}
    return {one: found[0] for one, found in pairs.items()}


def _tidiness(value: str) -> tuple[bool, bool, int, bool]:
    """Without stray spaces or invisible characters, composed, a word rather than an initial, with one capital."""
    clean = value == value.strip() and not any(unicodedata.category(letter) == "Cf" for letter in value)
    return clean, unicodedata.is_normalized("NFC", value), min(len(value.strip()), 2), value.istitle()


def shared_end(first: set[str], test: set[str]) -> str:
    """The mark that ends every value of the test file and none of the first, if without it all are known; else nothing.

    So are the labels of the Adult table's test part: ``>50K.`` beside ``>50K``.
    """
    ends = {value[-1:] for value in test}
    if len(ends) != 1 or not (end := ends.pop()) or end.isalnum() or any(value.endswith(end) for value in first):
        return ""
    return end if {value[: -len(end)].rstrip() for value in test} <= first else ""
