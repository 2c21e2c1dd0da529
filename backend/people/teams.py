"""Teams: who shares datasets and audits."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from backend.chain import record
from backend.errors import InputProblem, NotFound
from backend.people import queries, service
from backend.people.service import Principal
from backend.plain import clean_name, refuse_strange
from backend.tables import Team


def list_teams(session: Session, principal: Principal) -> list[dict[str, Any]]:
    """All teams by name for an admin, one's own for anybody else."""
    shown = [team for team in queries.teams(session) if "admin" in principal.scopes or team.id == principal.team_id]
    return [{"id": team.id, "name": team.name, "created_at": team.created_at} for team in shown]


def make_team(session: Session, principal: Principal, name: Any) -> dict[str, Any]:
    """A team without people yet.

    Raises:
        InputProblem: no name, or one that another team has.
    """
    queries.lock_people(session)
    team = add_team(session, _team_name(session, name))
    record(session, principal, "team.made", "team", team.id)
    return {"id": team.id, "name": team.name, "created_at": team.created_at}


def rename_team(session: Session, principal: Principal, team_id: str, name: Any) -> dict[str, Any]:
    """Another name for a team."""
    queries.lock_people(session)
    team = session.get(Team, service.plain_id(team_id), with_for_update=True)
    if team is None:
        raise NotFound("team")
    team.name = _team_name(session, name, team.id)
    record(session, principal, "team.renamed", "team", team.id)
    session.flush()
    return {"id": team.id, "name": team.name, "created_at": team.created_at}


def _team_name(session: Session, name: Any, own: str = "") -> str:
    refuse_strange({"name": name})
    tidy = clean_name(name, otherwise="") if isinstance(name, str) else ""
    if not tidy:
        raise InputProblem.at("name", "A team needs a name.")
    other = queries.team_named(session, tidy)
    if other is not None and other.id != own:
        raise InputProblem.at("name", "Another team has this name.")
    return tidy


def add_team(session: Session, name: str) -> Team:
    """A new row, with its id and time."""
    team = Team(name=name)
    session.add(team)
    session.flush()
    session.refresh(team)
    return team
