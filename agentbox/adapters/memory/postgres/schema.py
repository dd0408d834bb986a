"""The tables, as numbered migrations, and the required extension.

An entry, its vector and its words are one row. `now_ms` is the only clock: milliseconds since 1970
of the server. `words` is built from folded text, so that case and accents do not matter. The vector
graph is HNSW with m 16 and ef_construction 128. New words are indexed at once, because every search
would read a pending list completely.
"""

from agentbox.core.slot_errors import BackendError
from agentbox.core.storage.postgres.database import Connection, fetch_one
from agentbox.core.storage.postgres.migrations import Migration

# of pgvector: iterative scans, without which a filter may leave a page half empty
MIN_VERSION = (
    0,
    8,
)
_CREATE_EXTENSION = "CREATE EXTENSION vector"
TABLES = Migration(
    "0001_tables.sql",
    """
    CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
        'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
    CREATE TABLE entries (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL,
        value text NOT NULL, text text NOT NULL, metadata text NOT NULL, bytes bigint NOT NULL,
        created_at bigint NOT NULL, updated_at bigint NOT NULL, expires_at bigint,
        vector vector(256), words tsvector NOT NULL, UNIQUE (namespace, key)
    );
    CREATE INDEX entries_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;
    CREATE INDEX entries_vector ON entries USING hnsw (vector vector_cosine_ops) WITH (m = 16, ef_construction = 128);
    CREATE INDEX entries_words ON entries USING gin (words) WITH (fastupdate = off);
    CREATE TABLE metadata (
        entry bigint NOT NULL REFERENCES entries (id) ON DELETE CASCADE, key text COLLATE "C" NOT NULL, kind text NOT NULL,
        number double precision, words text COLLATE "C", PRIMARY KEY (entry, key)
    );
    CREATE INDEX metadata_key ON metadata (key, kind, number);
    CREATE TABLE namespaces (name text COLLATE "C" PRIMARY KEY, entries bigint NOT NULL, bytes bigint NOT NULL);
    CREATE TABLE model (id integer PRIMARY KEY CHECK (id = 0), model_id text NOT NULL, dims integer NOT NULL);
    CREATE TABLE pulse (id integer PRIMARY KEY CHECK (id = 0), at bigint NOT NULL);
    """,
)
# The progress of rewriting all vectors with another model, and the data files and packages of the
# model, so that a box with the same files need not load it.
RENEWAL = Migration(
    "0002_renewal.sql",
    """
    CREATE TABLE renewal (id integer PRIMARY KEY CHECK (id = 0), model_id text NOT NULL, after bigint NOT NULL);
    ALTER TABLE model ADD COLUMN files text NOT NULL DEFAULT '';
    """,
)
# Written and removed entries with their transactions, for boxes that cache words: rows visible now
# but not in a snapshot were committed since, in any order. `pruned` is the transaction below which
# rows are missing.
CHANGES = Migration(
    "0003_changes.sql",
    """
    CREATE TABLE changes (at xid8 NOT NULL DEFAULT pg_current_xact_id(), entry bigint NOT NULL);
    CREATE INDEX changes_at ON changes (at);
    CREATE TABLE pruned (id integer PRIMARY KEY CHECK (id = 0), before xid8 NOT NULL);
    INSERT INTO pruned VALUES (0, '0');
    CREATE FUNCTION record_changes() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS
        'BEGIN INSERT INTO changes (entry) SELECT id FROM changed; RETURN NULL; END';
    CREATE TRIGGER entries_inserted AFTER INSERT ON entries REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION record_changes();
    CREATE TRIGGER entries_deleted AFTER DELETE ON entries REFERENCING OLD TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION record_changes();
    """,
)
MIGRATIONS = (TABLES, RENEWAL, CHANGES)


async def ensure_pgvector(db: Connection) -> str:
    """Return the schema of pgvector, creating the extension if allowed. Raises BackendError with
    the statement to run."""
    import psycopg

    sql = "SELECT extversion, nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    extension = await fetch_one(db, sql)
    if extension is None:
        try:
            async with db.transaction():
                await db.execute(_CREATE_EXTENSION)
        except (
            psycopg.errors.InsufficientPrivilege,
            psycopg.errors.FeatureNotSupported,
            psycopg.errors.UndefinedFile,
        ):
            raise _missing_feature(
                "has no pgvector, and this role cannot create it", _CREATE_EXTENSION
            ) from None
        except psycopg.errors.UniqueViolation:
            extension = None  # another schema of this database created it first
        extension = await fetch_one(db, sql)
        assert extension is not None
    version, schema = extension
    if tuple(map(int, version.split(".")[:2])) < MIN_VERSION:
        raise _missing_feature(
            f"has pgvector {version}, at least {MIN_VERSION[0]}.{MIN_VERSION[1]} is needed",
            "ALTER EXTENSION vector UPDATE",
        )
    return str(schema)


def _missing_feature(problem: str, statement: str) -> BackendError:
    return BackendError(
        f"cannot open memory: the database {problem}; run as a superuser: {statement}",
        hint=f"install pgvector on the server, then run in the database: {statement}",
        slot="memory",
        impl="external-pg",
    )
