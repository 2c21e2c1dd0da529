"""All tables of the database, and nothing but SQLAlchemy."""

from backend.tables.activity import Activity, ActivityEnd
from backend.tables.audit import Audit, Calibration, Run, Stack
from backend.tables.base import Base, Claimable, random_id
from backend.tables.dataset import Dataset, Group, Recipe
from backend.tables.event import Event
from backend.tables.measurement import GapFloor, Measurement, RunValue, Statistic
from backend.tables.person import (
    ROLES,
    SCOPES,
    BrowserSession,
    IdempotencyKey,
    Person,
    SignInCount,
    SignInLink,
    Team,
    Token,
)

__all__ = [
    "ROLES",
    "SCOPES",
    "Activity",
    "ActivityEnd",
    "Audit",
    "Base",
    "BrowserSession",
    "Calibration",
    "Claimable",
    "Dataset",
    "Event",
    "GapFloor",
    "Group",
    "IdempotencyKey",
    "Measurement",
    "Person",
    "Recipe",
    "Run",
    "RunValue",
    "SignInCount",
    "SignInLink",
    "Stack",
    "Statistic",
    "Team",
    "Token",
    "random_id",
]
