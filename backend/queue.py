"""Names of all jobs, and the one way to ask for one: a name and an id leave after the commit, never before.

The database is the truth; the queue only wakes people up. A message that is lost is sent again by the sweeper,
a message that comes twice does no harm.
"""

from __future__ import annotations

from typing import Protocol

READ_DATASET = "dataset.read"
COUNT_GROUPS = "dataset.groups"
PLAN_AUDIT = "audit.plan"
TRAIN_STACK = "stack.train"
MEASURE_AUDIT = "audit.measure"

LIGHT = "light"
TRAIN = "train"
TRAIN_GPU = "train-gpu"

QUEUE_OF = {
    READ_DATASET: LIGHT,
    COUNT_GROUPS: LIGHT,
    PLAN_AUDIT: LIGHT,
    MEASURE_AUDIT: LIGHT,
    TRAIN_STACK: TRAIN,
}
"""Queue of each job; a stack whose kernel needs CUDA goes to ``train-gpu`` instead."""


class Queue(Protocol):
    """Where job names go."""

    def send(self, job: str, object_id: str, queue: str | None = None) -> None:
        """Send one job; ``queue`` defaults to ``QUEUE_OF[job]``. Never raises when the broker is away: the sweeper
        will send again."""
