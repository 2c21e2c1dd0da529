"""Passwords: argon2id through pwdlib, in one thread of their own, so that hashing never holds up pages or events."""

from __future__ import annotations

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from pwdlib import PasswordHash
from pwdlib.exceptions import UnknownHashError
from pwdlib.hashers.argon2 import Argon2Hasher

from backend.errors import InputProblem

SHORTEST, LONGEST, FEWEST_DIFFERENT = 12, 200, 5
COMMON = ("password", "qwert", "asdf", "letmein", "12345678", "counterpoise", "abcdefgh", "iloveyou")
"""What guessing begins with."""
HASH = PasswordHash((Argon2Hasher(time_cost=3, memory_cost=64 * 1024, parallelism=1),))
"""64 MiB, three passes, one lane: RFC 9106's second choice for machines with little memory, on one core."""

_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="passwords")


@cache
def nobodys_hash() -> str:
    """Compared with where there is no such account, so that the answer takes as long."""
    return HASH.hash("nobody has this password")


def check_new(password: str, again: str, email: str = "") -> str:
    """A new password that may be used, in the one spelling that is hashed.

    Raises:
        InputProblem: at ``password`` or ``again``.
    """
    word = _spelled(password)
    if len(word) < SHORTEST:
        raise InputProblem.at("password", f"A password has at least {SHORTEST} characters. A short sentence is good.")
    if len(word) > LONGEST:
        raise InputProblem.at("password", f"A password has at most {LONGEST} characters.")
    name = email.partition("@")[0].lower()
    common = any(known in word.lower() for known in COMMON)
    if common or len(set(word)) < FEWEST_DIFFERENT or (len(name) > 3 and name in word.lower()):
        raise InputProblem.at(
            "password",
            "This is too easy to guess. Do not repeat a few characters, or use your name, a row of keys or a common word.",
        )
    if word != _spelled(again):
        raise InputProblem.at("again", "The two passwords differ. Type the same one twice.")
    return word


async def hash_new(password: str) -> str:
    """The stored form; takes about a tenth of a second in the passwords' thread."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, HASH.hash, _spelled(password))


async def fits(password: str, stored: str | None) -> tuple[bool, str | None]:
    """Whether a password is the stored one, and a new stored form where the old one is out of date."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, _fits, password[: 4 * LONGEST], stored)


def _fits(password: str, stored: str | None) -> tuple[bool, str | None]:
    try:
        right, fresh = HASH.verify_and_update(_spelled(password), stored or nobodys_hash())
    except UnknownHashError:
        return False, None
    return right and stored is not None, fresh


def _spelled(password: str) -> str:
    return unicodedata.normalize("NFKC", password.encode("utf-8", "replace").decode("utf-8"))
