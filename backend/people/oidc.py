"""OpenID Connect: code flow with PKCE against the issuer that the settings name, through Authlib.

What a browser carries between the two steps (state, nonce, verifier) is sealed in a short-lived cookie of its own, so
that only the browser that began can finish, and any web process can serve it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oidc.core import CodeIDToken
from cryptography.fernet import Fernet, InvalidToken
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidClaimError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from backend.errors import NotReady, NotSignedIn, TooMany
from backend.settings import Settings

log = logging.getLogger("counterpoise.web")

SCOPE = "openid email profile"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures by a key of the issuer; never a shared secret, never none."""
FLOW_SECONDS = 600
KEEP_SECONDS = 3600
TIMEOUT_SECONDS = 10
FETCH_SECONDS = 4
LEEWAY_SECONDS = 120
AT_ONCE = 4

NOT_BEGUN = (
    "This sign-in was not begun in this browser, or was begun too long ago, or in another tab since. "
    "Nobody was signed in. Begin again here."
)
CLOCKS = (
    "The identity provider's answer is dated in another time than this server's: their clocks differ by more than "
    "two minutes. Nobody was signed in. Ask the operator to set the clock, and try again."
)
NOT_TRUSTED = (
    "The identity provider's answer does not hold. Nobody was signed in. "
    "Begin again; if it happens again, tell the operator."
)


@dataclass(frozen=True)
class Claims:
    """What the issuer says of somebody. ``email`` is None unless the issuer has verified it."""

    issuer: str
    subject: str
    email: str | None
    name: str


class Provider:
    """The issuer. Discovery and keys are kept for an hour; keys are asked for again when one is unknown."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        key = hashlib.sha256(f"oidc flow {settings.secret_key}".encode()).digest()
        self._seal = Fernet(base64.urlsafe_b64encode(key))
        self._redirect = f"{settings.base_url.rstrip('/')}/sign-in/oidc/callback"
        self._kept: dict[str, tuple[float, dict[str, Any]]] = {}
        self._fetching = threading.BoundedSemaphore(AT_ONCE)
        self._room = threading.BoundedSemaphore(AT_ONCE)

    def begin(self, next_path: str) -> tuple[str, str]:
        """The address to send the browser to, and the sealed cookie for its return.

        Raises:
            NotReady: the issuer does not answer.
        """
        flow = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        address, _ = self._session().create_authorization_url(
            self._metadata()["authorization_endpoint"],
            state=flow["state"],
            code_verifier=flow["verifier"],
            nonce=flow["nonce"],
        )
        return str(address), self._seal.encrypt(json.dumps(flow | {"next": next_path}).encode()).decode()

    def finish(self, sealed: str | None, query: Mapping[str, str]) -> tuple[Claims, str]:
        """Who came back, and where they wanted to go.

        Raises:
            NotSignedIn: another browser, a refusal, an answer that does not hold, clocks that differ.
            NotReady: the issuer does not answer.
        """
        flow = self._opened(sealed)
        if not hmac.compare_digest(flow["state"].encode(), query.get("state", "").encode("utf-8", "replace")):
            raise NotSignedIn(NOT_BEGUN)
        if query.get("error") or not query.get("code"):
            raise NotSignedIn("The identity provider did not sign you in. Nothing was changed here. Try again there.")
        if query.get("iss", self._settings.oidc_issuer) != self._settings.oidc_issuer:
            raise NotSignedIn(NOT_TRUSTED)
        return self._claims(self._token(query["code"], flow["verifier"]), flow["nonce"]), flow["next"]

    def answers(self) -> bool:
        """Whether the issuer's discovery document can be read now; for ``doctor``."""
        try:
            self._metadata()
        except (NotReady, NotSignedIn, TooMany):
            return False
        return True

    def _opened(self, sealed: str | None) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads(self._seal.decrypt((sealed or "").encode(), ttl=FLOW_SECONDS))
        except (InvalidToken, ValueError):
            raise NotSignedIn(NOT_BEGUN) from None
        return found

    def _token(self, code: str, verifier: str) -> dict[str, Any]:
        if not self._room.acquire(blocking=False):
            raise TooMany("Many are signing in at this moment. Nobody was signed in. Begin again in a few seconds.", 5)
        try:
            with self._session() as session:
                found: dict[str, Any] = session.fetch_token(
                    self._metadata()["token_endpoint"], code=code, code_verifier=verifier, timeout=TIMEOUT_SECONDS
                )
        except (AuthlibBaseError, ValueError) as problem:
            log.warning("The identity provider refused a code (%s).", type(problem).__name__)
            raise NotSignedIn(NOT_TRUSTED) from None
        except requests.RequestException as problem:
            raise self._away(problem) from None
        finally:
            self._room.release()
        return found

    def _claims(self, token: Mapping[str, Any], nonce: str) -> Claims:
        try:
            read = self._verified(str(token.get("id_token", "")))
            options = {"iss": {"essential": True, "value": self._settings.oidc_issuer}}
            options |= {"aud": {"essential": True, "value": self._settings.oidc_client_id}}
            params = {
                "nonce": nonce,
                "client_id": self._settings.oidc_client_id,
                "access_token": token.get("access_token"),
            }
            claims = CodeIDToken(read.claims, read.header, options, params)
            claims.validate(leeway=LEEWAY_SECONDS)
        except ExpiredTokenError:
            raise NotSignedIn(CLOCKS) from None
        except (JoseError, ValueError, LookupError, TypeError) as problem:
            log.warning("The identity provider's answer does not hold (%s).", type(problem).__name__)
            early = isinstance(problem, InvalidClaimError) and problem.claim in ("iat", "nbf")
            raise NotSignedIn(CLOCKS if early else NOT_TRUSTED) from None
        email = claims.get("email") if claims.get("email_verified") is True else None
        name = claims.get("name") or claims.get("preferred_username") or "Newcomer"
        return Claims(self._settings.oidc_issuer, str(claims["sub"])[:300], email and str(email).lower(), str(name))

    def _verified(self, text: str) -> jwt.Token:
        registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        address = self._metadata()["jwks_uri"]
        try:
            return jwt.decode(text, KeySet.import_key_set(self._fetch(address)), registry=registry)  # type: ignore[arg-type]  # JSON from the issuer
        except InvalidKeyIdError:
            self._kept.pop(address, None)
            return jwt.decode(text, KeySet.import_key_set(self._fetch(address)), registry=registry)  # type: ignore[arg-type]  # as above

    def _metadata(self) -> dict[str, Any]:
        found = self._fetch(f"{self._settings.oidc_issuer.rstrip('/')}/.well-known/openid-configuration")
        wanted = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        if found.get("issuer") != self._settings.oidc_issuer or not all(
            isinstance(found.get(name), str) for name in wanted
        ):
            self._kept.clear()
            raise NotReady(
                "The identity provider's discovery document names another issuer, or lacks an address. "
                "Nobody was signed in. Ask the operator to check OIDC_ISSUER."
            )
        return found

    def _fetch(self, address: str) -> dict[str, Any]:
        until, kept = self._kept.get(address, (0.0, {}))
        if time.monotonic() < until:
            return kept
        if not self._fetching.acquire(blocking=False):
            raise TooMany("The identity provider is being asked already. Nobody was signed in. Begin again.", 5)
        try:
            answer = requests.get(address, timeout=FETCH_SECONDS)
            answer.raise_for_status()
            found = answer.json()
        except (requests.RequestException, ValueError) as problem:
            raise self._away(problem) from None
        finally:
            self._fetching.release()
        if not isinstance(found, dict):
            raise self._away(ValueError())
        self._kept[address] = (time.monotonic() + KEEP_SECONDS, found)
        return found

    def _away(self, problem: Exception) -> NotReady:
        log.warning("The identity provider did not answer (%s).", type(problem).__name__)
        return NotReady("The identity provider did not answer. Nobody was signed in. Wait a moment and try again.")

    def _session(self) -> OAuth2Session:
        return OAuth2Session(
            self._settings.oidc_client_id,
            self._settings.oidc_client_secret or None,
            scope=SCOPE,
            redirect_uri=self._redirect,
            code_challenge_method="S256",
        )
