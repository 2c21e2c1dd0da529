"""The one error of the laptop's start: three sentences for the person at the terminal."""

from __future__ import annotations


class DemoProblem(Exception):
    """Something that a person can put right: what happened, where, what to do next."""
