"""The queue for real: job names and ids go to Celery's broker, from a process that never loads a task.

Sending must neither raise nor block a request for long when the broker is away: timeouts are short, nothing is
retried, and after a failure nothing is sent for a few seconds. What was not sent is found by the workers' sweeper.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from celery import Celery

from backend.queue import QUEUE_OF

log = logging.getLogger("counterpoise.queue")

CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 2.0
PAUSE_SECONDS = 5.0


class CeleryQueue:
    """Sends names; connections are opened when first needed and shared by threads."""

    def __init__(self, redis_url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = Celery("counterpoise", broker=redis_url, set_as_current=False)
        self._app.conf.update(
            task_ignore_result=True,
            task_serializer="json",
            broker_connection_timeout=CONNECT_SECONDS,
            broker_transport_options={
                "socket_connect_timeout": CONNECT_SECONDS,
                "socket_timeout": ANSWER_SECONDS,
                "retry_on_timeout": False,
                "max_retries": 0,
            },
        )
        self._clock = clock
        self._silent_until = float("-inf")
        self._lock = threading.Lock()

    def send(self, job: str, object_id: str, queue: str | None = None) -> None:
        """Send one job; never raises. See ``backend.queue.Queue``."""
        with self._lock:
            if self._clock() < self._silent_until:
                return
        try:
            self._app.send_task(job, args=[object_id], queue=queue or QUEUE_OF[job], ignore_result=True, retry=False)
        except Exception as error:  # whatever the broker's client raises: the sweeper sends again
            log.warning("The broker is away (%s); %s waits for the sweeper.", type(error).__name__, job)
            with self._lock:
                self._silent_until = self._clock() + PAUSE_SECONDS

    def ping(self) -> None:
        """Raises unless the broker answers within its timeouts."""
        with self._app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=0, timeout=CONNECT_SECONDS)
            connection.default_channel.client.ping()

    def close(self) -> None:
        """Lets go of all connections."""
        self._app.close()
