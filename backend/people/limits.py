"""How often somebody may try to sign in: counted in the database for all web processes, bounded at once in each."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from backend.errors import TooMany
from backend.people import queries
from backend.settings import Settings

ADDRESS_TIMES = 5
"""An address may fail so many times as often as an account: several people may share it."""
MOST_REMEMBERED = 10_000
BUSY = "Many are signing in at this moment. Nothing was tried. Wait a few seconds and try again."


class AddressClosed(TooMany):
    """The address itself has failed too often, whatever the account."""


@dataclass(frozen=True)
class Counted:
    """A try that was counted before it was made, so that many at once cannot pass. ``last``: the next is refused."""

    keys: tuple[str, str]
    last: bool


def count_try(session: Session, settings: Settings, account: str, address: str) -> Counted:
    """Counts a try against the account and the address.

    Raises:
        TooMany: one of them has failed too often; in words, and for how long.
    """
    window = timedelta(minutes=settings.sign_in_minutes)
    keys = _key("account", account), _key("address", address)
    limits = dict(zip(keys, (settings.sign_in_failures, ADDRESS_TIMES * settings.sign_in_failures), strict=True))
    last = False
    for key in sorted(limits):  # in one order, so that two tries never wait for each other in a ring
        failures, since = queries.count_failure(session, key, window)
        if failures > limits[key]:
            left = (since + window - datetime.now(UTC)).total_seconds()
            raise (AddressClosed if key == keys[1] else TooMany)(_locked(left), max(left, 1))
        last = last or failures == limits[key]
    return Counted(keys, last)


def forget_tries(session: Session, counted: Counted) -> None:
    """After the right password: the account is trusted again, and the address gets this try back."""
    queries.forget_failures(session, counted.keys[0], counted.keys[1])


def forget_account(session: Session, account: str) -> None:
    """After a link from an admin: the account may be tried again."""
    queries.forget_failures(session, _key("account", account), "")


def _locked(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return (
        f"Signing in is locked for {minutes} more minute{'s' if minutes > 1 else ''}. There were too many failed tries for "
        "this account or from this address. Wait, or use a one-time link from an admin."
    )


def _key(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind} {name}".encode("utf-8", "replace")).hexdigest()


@dataclass
class Gate:
    """At most a few sign-ins at a time, of one address and of all; more are refused before they cost anything.

    It lives on the event loop and takes no lock. ``close`` remembers for how long an address was told to wait.
    """

    everyone: int = 8
    each: int = 3
    inside: Counter[str] = field(default_factory=Counter)
    closed: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def enter(self, address: str, *, guesses: bool = True) -> Iterator[None]:
        """Room for one sign-in; one that guesses nothing (a link, or somebody who is in) does not mind a closed address.

        Raises:
            TooMany: no room, or the address has to wait.
        """
        refusal = self.refusal(address) if guesses else self._full(address)
        if refusal is not None:
            raise refusal
        self.inside[address] += 1
        try:
            yield
        finally:
            self.inside[address] -= 1
            self.inside += Counter()

    def refusal(self, address: str) -> TooMany | None:
        """Why a sign-in from there would be refused now, or None."""
        left = self.closed.get(address, 0.0) - time.monotonic()
        if left > 0:
            return TooMany(_locked(left), left)
        return self._full(address)

    def _full(self, address: str) -> TooMany | None:
        if self.inside.total() >= self.everyone or self.inside[address] >= self.each:
            return TooMany(BUSY, 5)
        return None

    def close(self, address: str, seconds: float) -> None:
        """Refuses an address at once for so long."""
        if len(self.closed) >= MOST_REMEMBERED:
            self.closed.clear()
        self.closed[address] = time.monotonic() + seconds
