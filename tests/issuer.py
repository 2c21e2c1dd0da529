"""An OpenID Connect issuer of the tests' own: discovery, keys, code flow with PKCE, each step checked as a real one does."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "counterpoise", "a secret of / the client"


@dataclass
class Issuer:
    """``person`` is who sits before its own sign-in page; the other fields make it misbehave."""

    address: str = ""
    person: dict[str, Any] = field(
        default_factory=lambda: {"sub": "ada-1", "name": "Ada", "email": "Ada@Example.org", "email_verified": True}
    )
    clock_off: float = 0.0
    changes: dict[str, Any] = field(default_factory=dict)
    refuses: bool = False
    foreign_key: bool = False
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)

    def turn_key(self) -> None:
        """Signs with a new key from now on."""
        self.key = RSAKey.generate_key(2048, {"kid": secrets.token_hex(4), "use": "sig"})

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        self.asked.append(asked)
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        if self.refuses:
            return f"{asked['redirect_uri']}?{urlencode({'error': 'access_denied', 'state': asked['state']})}"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.address})}"

    def token(self, authorization: str, form: dict[str, str]) -> dict[str, Any] | None:
        """The answer of the token endpoint, or None: wrong client, code, address or verifier."""
        client = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        quoted = base64.b64encode(f"{quote(CLIENT)}:{quote(SECRET, safe='')}".encode()).decode()
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if (
            authorization not in (f"Basic {client}", f"Basic {quoted}")
            or asked is None
            or form.get("redirect_uri") != asked["redirect_uri"]
            or base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() != asked["code_challenge"]
        ):
            return None
        now = int(time.time() + self.clock_off)
        claims = {"iss": self.address, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        key = RSAKey.generate_key(2048) if self.foreign_key else self.key
        signed = jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims | self.person | self.changes, key)
        return {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "expires_in": 300, "id_token": signed}


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                self.send_response(302)
                self.send_header("Location", issuer.authorize(query))
                self.end_headers()
                return
            known = {
                "/.well-known/openid-configuration": issuer.discovery(),
                "/keys": {"keys": [issuer.key.as_dict(private=False)]},
            }
            self._say(known.get(parts.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {unquote(name): values[0] for name, values in parse_qs(body).items()}
            self._say(issuer.token(self.headers.get("Authorization", ""), form))

        def _say(self, body: dict[str, Any] | None) -> None:
            self.send_response(200 if body else 400)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body or {"error": "invalid_grant"}).encode())

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Serves on a free port of this machine until the block ends."""
    issuer = Issuer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(issuer))
    issuer.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
