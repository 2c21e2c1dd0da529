"""Input from people before anything looks at its meaning: values that no field, database or log can hold.

Both doors, pages and REST, pass their bodies through ``refuse_strange``.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from backend.errors import InputProblem
from worker.engine.results import FieldError

MOST_DEPTH = 12
MOST_VALUES = 20_000
LARGEST_WHOLE_NUMBER = 1 << 53
LONGEST_TEXT = 20_000
LONGEST_NAME = 200


def refuse_strange(body: Mapping[str, Any]) -> None:
    """Refuses numbers that are not finite, text with NUL or broken characters, and bodies too deep or too large.

    Raises:
        InputProblem: names each field at fault, as a dotted path (``epsilons[2]``).
    """
    found: list[FieldError] = []
    for count, (path, message) in enumerate(_walk("", body, 0)):
        if message:
            found.append(FieldError(path, message))
        if count >= MOST_VALUES:
            found.append(FieldError("", f"The body holds more than {MOST_VALUES:,} values."))
        if len(found) >= 20 or count >= MOST_VALUES:
            break
    if found:
        raise InputProblem.of(found)


def _walk(path: str, value: Any, depth: int) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, Mapping | list):
        if depth >= MOST_DEPTH:
            yield path, "This is nested too deeply."
            return
        yield path, None
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in pairs:
            if isinstance(key, str) and (problem := _text_problem(key)):
                yield path, f"A name in it cannot be used. {problem}"
            else:
                yield from _walk(_join(path, key), inner, depth + 1)
    else:
        yield path, _problem(value)


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _problem(value: Any) -> str | None:
    if isinstance(value, str):
        return _text_problem(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "This must be a finite number."
    if isinstance(value, int) and abs(value) > LARGEST_WHOLE_NUMBER:
        return "This number is too large."
    return None


def _text_problem(text: str) -> str | None:
    if len(text) > LONGEST_TEXT:
        return f"Text may have at most {LONGEST_TEXT:,} characters."
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        return "Text may not hold NUL or broken characters."
    return None


def file_name(text: str, *, otherwise: str) -> str:
    """As ``clean_name``, without the folders that some browsers send along; a quote, which browsers send as %22, is one."""
    text = text.replace("%22", '"')
    return clean_name(text.replace("\\", "/").rpartition("/")[2], otherwise=otherwise)


def title_problem(text: str) -> str | None:
    """Why a title that a person gave cannot be kept as it is, or None."""
    return f"A name may have at most {LONGEST_NAME} characters." if len(text) > LONGEST_NAME else None


def clean_name(text: str, *, otherwise: str, longest: int = LONGEST_NAME) -> str:
    """A name fit for screens and logs: one line, no control or invisible characters."""
    name = " ".join(text.split())
    shown = "".join(character for character in name if not unicodedata.category(character).startswith("C"))
    return shown[:longest].strip() or otherwise
