"""One head, up-down-up, and tables and migrations agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, inspect, text

from backend import migrate
from backend.embedded.services import Services
from backend.tables import Base

pytestmark = pytest.mark.services


@pytest.fixture
def spare(services: Services) -> Iterator[Engine]:
    """An empty database that this test may turn upside down."""
    services.postgres.ensure_database("spare")
    engine = create_engine(services.postgres.url("spare"))
    yield engine
    engine.dispose()
    with services.postgres.connect("postgres") as connection:
        connection.execute("DROP DATABASE spare WITH (FORCE)")


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def differences(engine: Engine) -> list[object]:
    options = {"compare_type": True, "compare_server_default": True}
    with engine.connect() as connection:
        return compare_metadata(MigrationContext.configure(connection, opts=options), Base.metadata)


def described(engine: Engine) -> dict[str, object]:
    """Columns, constraints and indexes of every table, by the database's own account."""
    asked = (
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2",
        "SELECT table_name, column_name, data_type, is_nullable, column_default, character_maximum_length "
        "FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2",
    )
    with engine.connect() as connection:
        return {query: [tuple(row) for row in connection.execute(text(query))] for query in asked}


def test_there_is_one_head():
    assert len(ScriptDirectory.from_config(migrate.alembic_config()).get_heads()) == 1


def test_up_down_up_and_tables_agree(spare: Engine):
    migrate.upgrade(url_of(spare))
    first = described(spare)
    assert differences(spare) == []
    migrate.downgrade(url_of(spare), "base")
    assert inspect(spare).get_table_names() == ["alembic_version"]
    migrate.upgrade(url_of(spare))
    assert described(spare) == first


def test_migrations_make_what_the_tables_say(spare: Engine, services: Services):
    """Compared in the database itself, since comparing metadata overlooks check constraints."""
    migrate.upgrade(url_of(spare))
    migrated = described(spare)
    migrate.downgrade(url_of(spare), "base")
    with spare.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    Base.metadata.create_all(spare)
    made = described(spare)
    without = {query: [row for row in rows if row[0] != "alembic_version"] for query, rows in migrated.items()}
    assert made == without


def test_upgrading_twice_changes_nothing(spare: Engine):
    migrate.upgrade(url_of(spare))
    migrate.upgrade(url_of(spare))
    with spare.connect() as connection:
        assert migrate.current_revision(connection) == migrate.newest_revision()


def test_every_constraint_has_a_name_of_ours(spare: Engine):
    migrate.upgrade(url_of(spare))
    names = next(iter(described(spare).values()))
    ours = [row for row in names if row[0] != "alembic_version" and not row[2].startswith("NOT NULL")]
    assert ours
    assert all(row[1].split("_")[0] in ("pk", "fk", "uq", "ck") for row in ours)


def triggers(engine: Engine) -> list[tuple[object, ...]]:
    query = (
        "SELECT pg_get_triggerdef(t.oid), p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid "
        "WHERE NOT t.tgisinternal ORDER BY 1"
    )
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_the_guard_of_the_activity_log_is_made_alike(spare: Engine):
    migrate.upgrade(url_of(spare))
    migrated = triggers(spare)
    assert "activity_guard" in str(migrated)
    migrate.downgrade(url_of(spare), "base")
    with spare.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    Base.metadata.create_all(spare)
    assert triggers(spare) == migrated


def test_people_of_before_accounts_are_kept(spare: Engine):
    migrate.upgrade(url_of(spare), "0001")
    with spare.begin() as connection:
        connection.execute(text("INSERT INTO team (id, name) VALUES ('t', 'Fairness')"))
        connection.execute(text("INSERT INTO person (id, team_id, name, role) VALUES ('p', 't', 'Ada', 'analyst')"))
        connection.execute(
            text("INSERT INTO sign_in_link (id, person_id, secret_hash, expires_at) VALUES ('l', 'p', 'h', now())")
        )
    migrate.upgrade(url_of(spare))
    with spare.connect() as connection:
        assert connection.execute(text("SELECT name, email FROM person")).one() == ("Ada", None)
        assert connection.execute(text("SELECT purpose FROM sign_in_link")).scalar_one() == "sign-in"


def test_measurements_of_an_earlier_data_folder_get_the_names_of_their_metrics(spare: Engine):
    migrate.upgrade(url_of(spare), "0001")
    old = [("correct", None), ("loss", None), ("loss", 1), ("predicted_positive", None), ("predicted_positive", 1),
           ("predicted_positive", 0), ("correct", 0)]  # fmt: skip
    row = text(
        "INSERT INTO measurement (team_id, audit_id, method, group_id, label, part, quantity, seeds, units, rows, rows_squared)"
        " VALUES ('t', 'a', 'dp-sgd', 'g', :label, 'test', :quantity, '{0}', 1, 1, 1)"
    )
    with spare.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        for quantity, label in old:
            connection.execute(row, {"quantity": quantity, "label": label})
    migrate.upgrade(url_of(spare))
    with spare.begin() as connection:
        found = connection.execute(text("SELECT quantity, label FROM measurement")).all()
        connection.execute(text("DELETE FROM measurement"))
    assert {tuple(row) for row in found} == {
        ("accuracy", None), ("loss", None), ("selection_rate", None), ("true_positive_rate", 1), ("false_positive_rate", 0)
    }  # fmt: skip
