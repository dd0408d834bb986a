"""The PostgreSQL that external-pg is held against: real, alone, and gone afterwards."""

import psycopg
import pytest
from postgres_server import running


def test_it_is_postgresql_17_with_pgvector_and_survives_a_crash():
    """A committed row is there after SIGQUIT and a start; afterwards neither folder nor listener is left."""
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
    """Its folder is named after a process that is no more."""
    with running() as server:
        left = server.folder.with_name("4194304-left")
        left.mkdir()
        with running():
            assert not left.exists()
            assert server.folder.exists()
