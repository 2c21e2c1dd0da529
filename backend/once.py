"""Creating POSTs that are sent twice create once: the Idempotency-Key header."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from backend.errors import InputProblem
from backend.people.service import Principal
from backend.tables import IdempotencyKey

LONGEST_KEY = 200


def fingerprint(body: Any) -> str:
    """SHA-256 of a body in one canonical spelling."""
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def first_with(
    session: Session, principal: Principal, key: str | None, route: str, body_sha256: str, object_id: str
) -> str:
    """The id of the object that belongs to ``key``: ``object_id`` itself for whoever comes first, else the earlier one.

    Of two requests at once the second waits here until the first has committed or rolled back.

    Raises:
        InputProblem: the key is malformed, or was used with another body.
    """
    if key is None:
        return object_id
    if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        raise InputProblem.at("Idempotency-Key", f"This must be 1 to {LONGEST_KEY} printable ASCII characters.")
    values = {"person_id": principal.person_id, "key": key, "route": route, "body_sha256": body_sha256}
    added = insert(IdempotencyKey).values(**values, object_id=object_id).on_conflict_do_nothing()
    if session.scalar(added.returning(IdempotencyKey.id)) is not None:
        return object_id
    found = select(IdempotencyKey).where(IdempotencyKey.person_id == principal.person_id, IdempotencyKey.key == key)
    earlier = session.scalars(found).one()
    if (earlier.route, earlier.body_sha256) != (route, body_sha256):
        raise InputProblem.at("Idempotency-Key", "This key was used with another body. Send a fresh key.")
    return earlier.object_id or object_id
