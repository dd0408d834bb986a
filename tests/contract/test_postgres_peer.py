"""The PostgreSQL that external-pg is tested with: real, on its own, and removed afterwards."""

import psycopg
import pytest
from postgres_server import running


def test_it_is_postgresql_17_with_pgvector_and_survives_a_crash():
    """A committed row is stored after SIGQUIT and a start; afterwards neither directory nor
    listener remains."""
    with running() as server:
        with psycopg.connect(server.dsn(), autocommit=True) as db:
            assert db.info.server_version // 10000 == 17
            db.execute("CREATE EXTENSION vector")
            db.execute("CREATE TABLE kept (v vector(3))")
            db.execute("INSERT INTO kept VALUES ('[1,2,3]')")
        server.stop(at_once=True)
        assert not server.running
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn(), connect_timeout=2)
        server.start()
        with psycopg.connect(server.dsn()) as db:
            assert db.execute("SELECT v::text FROM kept").fetchall() == [("[1,2,3]",)]
    assert not server.running
    assert not server.folder.exists()


def test_a_server_that_was_left_behind_is_removed_by_the_next():
    """Its directory is named after a process that no longer exists."""
    with running() as server:
        left = server.folder.with_name("4194304-left")
        left.mkdir()
        with running():
            assert not left.exists()
            assert server.folder.exists()
