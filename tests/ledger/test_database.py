"""The database opens, is migrated once, and says clearly when it cannot."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import IntegrityError

from evenhand_api.ledger.database import database_url, migrate, open_engine, reading, writing
from evenhand_api.ledger.errors import LedgerUnavailable
from evenhand_api.ledger.tables import metadata
from evenhand_api.settings import Settings
from evenhand_models import InvalidInput


def test_the_migrations_build_exactly_the_tables_that_are_described(engine: Engine) -> None:
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_migrating_again_changes_nothing(engine: Engine) -> None:
    migrate(engine)
    assert set(inspect(engine).get_table_names()) == {*metadata.tables, "alembic_version"}


def test_eight_at_once_may_open_a_new_file(tmp_path: Path) -> None:
    def opened(_: int) -> int:
        engine = open_engine(f"sqlite:///{tmp_path / 'new' / 'ledger.sqlite3'}")
        migrate(engine)
        with reading(engine) as connection:
            count = connection.execute(text("SELECT count(*) FROM clusters")).scalar_one()
        engine.dispose()
        return int(count)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(opened, range(8))) == [0] * 8


def test_many_files_may_be_opened_at_once(tmp_path: Path) -> None:
    def opened(number: int) -> set[str]:
        engine = open_engine(f"sqlite:///{tmp_path / f'ledger{number}.sqlite3'}")
        migrate(engine)
        names = set(inspect(engine).get_table_names())
        engine.dispose()
        return names

    with ThreadPoolExecutor(8) as pool:
        assert all(names == {*metadata.tables, "alembic_version"} for names in pool.map(opened, range(8)))


def test_what_is_not_written_to_its_end_is_not_written(engine: Engine) -> None:
    row = "INSERT INTO clusters (name, state_version, config_version, last_round, nodes, down) VALUES (:n, 0, 1, 0, '[]', '{}')"
    with writing(engine) as connection:
        connection.execute(text(row), {"n": "kept"})
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(text(row), [{"n": "lost"}, {"n": "kept"}])
    with reading(engine) as connection:
        assert connection.execute(text("SELECT name FROM clusters")).scalars().all() == ["kept"]


def test_without_an_address_the_file_is_in_the_data_directory(tmp_path: Path) -> None:
    assert database_url(Settings(data_dir=str(tmp_path))) == f"sqlite:///{tmp_path}/ledger.sqlite3"
    assert database_url(Settings(database_url="postgresql://h/d")) == "postgresql://h/d"


@pytest.mark.parametrize("address", ["mysql://h/d", "nothing", "oracle://x"])
def test_an_address_of_another_kind_is_refused_by_name(address: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        open_engine(address)
    assert refused.value.errors[0].pointer == "/EVENHAND_DATABASE_URL"


def test_a_database_that_is_away_is_said_in_one_line(tmp_path: Path) -> None:
    engine = open_engine(f"postgresql://nobody@/none?host={tmp_path}")
    with pytest.raises(LedgerUnavailable) as away:
        migrate(engine)
    assert "\n" not in str(away.value)
    with pytest.raises(LedgerUnavailable), reading(engine):
        pass
