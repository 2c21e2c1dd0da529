"""Counts with their nouns, for sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
