"""Celery: broker, queues, early acknowledgement. The database row is the truth; a message only wakes a worker up.

Started as in ``worker/README.md``. Settings are read from the environment when first needed, not at import.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from celery import Celery, signals

from backend import queue as jobs
from backend.settings import Settings
from worker.tasks.context import ContextOfProcess

# Threads of a matrix product that spin while they wait slow each other tenfold as soon as another process wants a core.
# The OpenMP library reads this once, when torch is first imported inside a task.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

HARD_LIMIT_SECONDS = 3600
"""Of a light job in the forked pool: far above what any takes, so that a hung one ends some day. A train worker is one
process without a pool, where such limits do nothing; there the lease decides."""


def configuration() -> dict[str, Any]:
    """Celery's own settings, made from ours."""
    settings = Settings()  # type: ignore[call-arg]  # filled from the environment
    patience = {"visibility_timeout": 2 * HARD_LIMIT_SECONDS}
    return {
        "broker_url": settings.redis_url,
        "broker_transport_options": patience
        | {"socket_connect_timeout": 3, "socket_keepalive": True, "health_check_interval": 10},
        "visibility_timeout": 2 * HARD_LIMIT_SECONDS,
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_acks_late": False,
        "task_default_queue": jobs.LIGHT,
        "task_time_limit": HARD_LIMIT_SECONDS,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "enable_utc": True,
    }


app = Celery("counterpoise", set_as_current=True)
app.add_defaults(configuration)


shutting_down = threading.Event()
contexts = ContextOfProcess(shutting_down)


TASKS: Mapping[str, str] = {
    jobs.READ_DATASET: "read_dataset",
    jobs.COUNT_GROUPS: "count_groups",
    jobs.PLAN_AUDIT: "plan_audit",
    jobs.TRAIN_STACK: "train_stack",
    jobs.MEASURE_AUDIT: "measure_audit",
}
"""Job name -> module of ``worker.tasks`` whose ``run(context, id)`` does it; imported when first needed."""


def register(job: str, module: str) -> None:
    """Make one module a Celery task of this name."""

    def perform(object_id: str) -> None:
        import_module(f"worker.tasks.{module}").run(contexts.get(), object_id)

    app.task(name=job)(perform)


for name, module in TASKS.items():
    register(name, module)


def set_up_logging(**_: Any) -> None:
    """One line an event on standard output: ours from INFO on, those of libraries from WARNING on."""
    logging.basicConfig(
        stream=sys.stdout, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s", force=True
    )
    logging.getLogger("counterpoise").setLevel(logging.INFO)
    for library in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(library).setLevel(logging.ERROR)  # ours say the same, with ids that mean something


warnings.filterwarnings("ignore", message="(?s).*superuser privileges")  # containers run as root
warnings.filterwarnings("ignore", message="(?s).*optional breaking change")  # on late acknowledgement, not ours


def start_sweeper(**_: Any) -> None:
    """In each process that works: the one of a train worker, and each forked one of a light worker, never the
    parent of a pool, which must stay free of threads and connections for the sake of its forks.
    """
    from worker.tasks.sweeper import start

    start(contexts.get())


def interrupt_training(**_: Any) -> None:
    """A train worker that is told to end hands its stack back within a second instead of finishing it.

    Runs in a signal handler, where no lock may be waited for.
    """
    shutting_down.set()


signals.setup_logging.connect(set_up_logging)
signals.worker_process_init.connect(start_sweeper)
signals.worker_shutting_down.connect(interrupt_training)
