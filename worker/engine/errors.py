"""Errors of the engine. They know no HTTP status.

EngineError
├── TableProblem        an uploaded table cannot be read or used as asked
├── QuestionProblem     an audit's question is out of range; carries one FieldError a field
├── AccountingProblem   the accountants disagree, or a budget cannot be met
└── Stopped             the observer said stop; nothing is wrong
"""

from __future__ import annotations

from worker.engine.results import FieldError


class EngineError(Exception):
    """Root of the tree."""


class TableProblem(EngineError):
    """What happened, where (row counted from 1 below the header, column by name), and what to do next."""

    def __init__(
        self,
        happened: str,
        *,
        next_step: str,
        row: int | None = None,
        column: str | None = None,
        limit: str | None = None,
    ) -> None:
        super().__init__(f"{happened} {next_step}")
        self.happened = happened
        self.next_step = next_step
        self.row = row
        self.column = column
        self.limit = limit


class QuestionProblem(EngineError):
    """A question that cannot be asked; ``errors`` names every field at fault."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        super().__init__(" ".join(f"{error.field}: {error.message}" for error in errors))
        self.errors = errors


class AccountingProblem(EngineError):
    """The privacy claim of a run could not be established; the run must not train."""


class Stopped(EngineError):
    """Training ended because the observer asked for it."""
