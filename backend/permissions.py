"""Who may do what: THE table. Every route and page has one line; one without opens to nobody, and a test names it.

The edge refuses by this table before a route runs, services check what they need once more, and docs/permissions.md is
made from it (``counterpoise permissions``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from backend.assets import PLOTLY_PATH, PLOTLY_STYLE_PATH
from backend.people.service import PERMISSIONS_OF_ROLE, Permission


@dataclass(frozen=True)
class Access:
    """``open``: no sign-in. ``needs``: one of these permissions. ``session_only``: by a browser session, never a token."""

    needs: tuple[Permission, ...] = ()
    open: bool = False
    session_only: bool = False


OPEN = Access(open=True)
ANYBODY = Access()
ONESELF = Access(session_only=True)
READ = Access(("read",))
RUN = Access(("run",))
DECIDE = Access(("decide",))
ERASE = Access(("run", "admin"))
OVERSEE = Access(("oversee",))
ADMIN = Access(("admin",), session_only=True)

ACCESS: Mapping[str, Access] = {
    # the process, its files and its description
    "GET /health": OPEN,
    "GET /ready": OPEN,
    "GET /static/{version}/{name:path}": OPEN,
    "GET /api/openapi.json": OPEN,
    "GET /api/docs": OPEN,
    "GET /api/docs.css": OPEN,
    f"GET {PLOTLY_PATH}": OPEN,
    f"GET {PLOTLY_STYLE_PATH}": OPEN,
    "GET /help": OPEN,
    "GET /glossary": OPEN,
    # ways in and out
    "GET /sign-in": OPEN,
    "POST /sign-in": OPEN,
    "GET /sign-in/forgotten": OPEN,
    "POST /sign-in/forgotten": OPEN,
    "GET /sign-in/oidc": OPEN,
    "GET /sign-in/oidc/callback": OPEN,
    "GET /sign-in/{secret}": OPEN,
    "POST /sign-in/{secret}": OPEN,
    "POST /sign-out": OPEN,
    "GET /signed-out": OPEN,
    # oneself
    "GET /me": ONESELF,
    "POST /me/name": ONESELF,
    "POST /me/password": ONESELF,
    "POST /me/sessions/{session_id}/end": ONESELF,
    "POST /me/sign-out-everywhere": ONESELF,
    "GET /api/v1/me": ANYBODY,
    "GET /api/v1/sessions": ONESELF,
    "DELETE /api/v1/sessions": ONESELF,
    "DELETE /api/v1/sessions/{session_id}": ONESELF,
    # service tokens
    "GET /tokens": ONESELF,
    "POST /tokens": ONESELF,
    "POST /tokens/{token_id}/revoke": ONESELF,
    "GET /api/v1/tokens": ANYBODY,
    "POST /api/v1/tokens": ONESELF,
    "DELETE /api/v1/tokens/{token_id}": ONESELF,
    # people and teams
    "GET /team": READ,
    "POST /team/invite": ADMIN,
    "GET /team/people/{person_id}": ADMIN,
    "POST /team/people/{person_id}": ADMIN,
    "POST /team/people/{person_id}/link": ADMIN,
    "POST /team/people/{person_id}/sign-out": ADMIN,
    "POST /team/people/{person_id}/tokens/{token_id}/revoke": ADMIN,
    "POST /team/teams": ADMIN,
    "POST /team/teams/{team_id}": ADMIN,
    "GET /api/v1/people": READ,
    "POST /api/v1/people": ADMIN,
    "PATCH /api/v1/people/{person_id}": ADMIN,
    "POST /api/v1/people/{person_id}/link": ADMIN,
    "DELETE /api/v1/people/{person_id}/sessions": ADMIN,
    "GET /api/v1/teams": READ,
    "POST /api/v1/teams": ADMIN,
    "PATCH /api/v1/teams/{team_id}": ADMIN,
    # the activity log
    "GET /activity": OVERSEE,
    "GET /api/v1/activity": OVERSEE,
    "GET /api/v1/activity.csv": OVERSEE,
    "GET /api/v1/activity/check": OVERSEE,
    # what can be chosen, what waits, what happens
    "GET /api/v1/catalogue": ANYBODY,
    "GET /api/v1/queue": READ,
    "GET /api/v1/events": READ,
    # datasets
    "GET /datasets": READ,
    "GET /parts/datasets": READ,
    "GET /datasets/new": RUN,
    "POST /datasets/new": RUN,
    "POST /datasets/sample": RUN,
    "GET /datasets/{dataset_id}": READ,
    "GET /datasets/{dataset_id}/parts/{name}": READ,
    "POST /datasets/{dataset_id}/parts/role-details": READ,
    "POST /datasets/{dataset_id}/roles": RUN,
    "POST /datasets/{dataset_id}/recipe": RUN,
    "POST /datasets/{dataset_id}/erase": ERASE,
    "GET /api/v1/datasets": READ,
    "POST /api/v1/datasets": RUN,
    "GET /api/v1/datasets/samples": READ,
    "GET /api/v1/datasets/{dataset_id}": READ,
    "PUT /api/v1/datasets/{dataset_id}/recipe": RUN,
    "PUT /api/v1/datasets/{dataset_id}/roles": RUN,
    "GET /api/v1/datasets/{dataset_id}/groups": READ,
    "GET /api/v1/datasets/{dataset_id}/groups.csv": READ,
    "DELETE /api/v1/datasets/{dataset_id}": ERASE,
    # audits
    "GET /": READ,
    "GET /audits": OPEN,
    "GET /parts/audits": READ,
    "GET /audits/new": RUN,
    "POST /audits/new": RUN,
    "POST /audits/new/forecast": READ,
    "GET /audits/{audit_id}": READ,
    "GET /audits/{audit_id}/parts/{name}": READ,
    "GET /audits/{audit_id}/charts/{key}.json": READ,
    "POST /audits/{audit_id}/stop": RUN,
    "POST /audits/{audit_id}/resume": RUN,
    "GET /api/v1/audits": READ,
    "POST /api/v1/audits": RUN,
    "POST /api/v1/audits/forecast": READ,
    "GET /api/v1/audits/{audit_id}": READ,
    "POST /api/v1/audits/{audit_id}/stop": RUN,
    "POST /api/v1/audits/{audit_id}/resume": RUN,
    "DELETE /api/v1/audits/{audit_id}": ERASE,
    "GET /api/v1/audits/{audit_id}/gaps": READ,
    "GET /api/v1/audits/{audit_id}/gaps.csv": READ,
    "GET /api/v1/audits/{audit_id}/disparities": READ,
    "GET /api/v1/audits/{audit_id}/disparities.csv": READ,
    "GET /api/v1/audits/{audit_id}/marks": READ,
    "GET /api/v1/audits/{audit_id}/marks.csv": READ,
    "GET /api/v1/audits/{audit_id}/tradeoff": READ,
    "GET /api/v1/audits/{audit_id}/tradeoff.csv": READ,
    "GET /api/v1/audits/{audit_id}/measurements": READ,
    "GET /api/v1/audits/{audit_id}/measurements.csv": READ,
    "GET /api/v1/audits/{audit_id}/values": READ,
    "GET /api/v1/audits/{audit_id}/values.csv": READ,
    "GET /api/v1/audits/{audit_id}/costs": READ,
    "GET /api/v1/audits/{audit_id}/costs.csv": READ,
    "GET /api/v1/audits/{audit_id}/runs": READ,
    "GET /api/v1/audits/{audit_id}/runs.csv": READ,
    "GET /api/v1/audits/{audit_id}/statistics": READ,
    "GET /api/v1/audits/{audit_id}/statistics.csv": READ,
}

MEANINGS: Mapping[Permission, str] = {
    "read": "See the datasets and audits of your team; a DPO or an auditor sees those of all teams.",
    "run": "Add and erase datasets, start, stop and resume audits.",
    "decide": "Decide on reports and sign them.",
    "oversee": "Read the activity log.",
    "admin": "Look after people, teams, tokens and how long things are kept. Only in a browser.",
}


def may(role: str, access: Access) -> bool:
    """Whether somebody of this role, signed in with a browser, gets past the table."""
    return access.open or not access.needs or bool(PERMISSIONS_OF_ROLE[role].intersection(access.needs))


def as_markdown() -> str:
    """The table as docs/permissions.md shows it."""
    roles = list(PERMISSIONS_OF_ROLE)
    lines = [
        "# Permissions",
        "",
        "Made from `backend/permissions.py` by `counterpoise permissions`; a test holds both together, and another walks",
        "every route as every role and as nobody. Other teams' objects answer 404 whatever the role may do.",
        "",
        f"| permission | meaning | {' | '.join(roles)} |",
        f"|---|---|{'---|' * len(roles)}",
    ]
    for permission, meaning in MEANINGS.items():
        held = ["yes" if permission in PERMISSIONS_OF_ROLE[role] else "" for role in roles]
        lines.append(f"| {permission} | {meaning} | {' | '.join(held)} |")
    lines += [
        "",
        f"| route | nobody | {' | '.join(roles)} | token |",
        f"|---|---|{'---|' * len(roles)}---|",
    ]
    for route, access in ACCESS.items():
        cells = ["yes" if access.open else "", *("yes" if may(role, access) else "" for role in roles)]
        scope = "" if access.session_only else " or ".join(access.needs) or "any"
        lines.append(f"| `{route}` | {' | '.join(cells)} | {scope} |")
    return "\n".join([*lines, ""])
