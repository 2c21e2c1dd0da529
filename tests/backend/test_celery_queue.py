"""Names leave for the broker; a broker that is away costs nobody anything."""

from __future__ import annotations

import json
import time

import pytest

from backend.celery_queue import PAUSE_SECONDS, CeleryQueue
from backend.embedded.services import Services
from backend.queue import READ_DATASET, TRAIN_GPU, TRAIN_STACK
from worker.tasks.sweeper import queue_lengths


def test_a_name_arrives_in_its_queue(clean_redis: str, services: Services) -> None:
    queue = CeleryQueue(clean_redis)
    queue.ping()
    queue.send(READ_DATASET, "a" * 32)
    queue.send(TRAIN_STACK, "b" * 32)
    queue.send(TRAIN_STACK, "c" * 32, TRAIN_GPU)
    lengths = queue_lengths(clean_redis)
    assert [lengths(name) for name in ("light", "train", "train-gpu")] == [1, 1, 1]
    with queue._app.connection_for_read() as connection:
        message = json.loads(connection.default_channel.client.lpop("train-gpu"))
    assert message["headers"]["task"] == TRAIN_STACK
    assert message["headers"]["ignore_result"]
    queue.close()
    services.valkey.flush()


@pytest.mark.parametrize("url", ["redis://127.0.0.1:9/0", "redis+socket:///nowhere/valkey.sock"])
def test_a_broker_that_is_away_is_not_waited_for(url: str) -> None:
    now = [0.0]
    queue = CeleryQueue(url, clock=lambda: now[0])
    began = time.monotonic()
    queue.send(READ_DATASET, "a" * 32)
    first = time.monotonic() - began
    assert first < 40
    began = time.monotonic()
    for _ in range(100):
        queue.send(READ_DATASET, "a" * 32)
    assert time.monotonic() - began < 5
    now[0] = PAUSE_SECONDS + 1
    queue.send(READ_DATASET, "a" * 32)
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the broker's client raises
        queue.ping()
    queue.close()
