"""Many entries at once: texts of common words about different subjects, with real embeddings,
copied into a schema."""

import random
from collections.abc import Sequence
from typing import Any

import psycopg

from agentbox.adapters.memory.embedder import load_embedder
from agentbox.adapters.memory.postgres.rows import fold_words, vector_text

_LINES = """
    river mountain harbour sailor anchor storm island lighthouse bread flour oven butter onion garlic soup kitchen server
    kernel socket thread memory crash compiler cache packet router garden tulip rose spade seed compost winter spring doctor
    nurse fever vaccine hospital surgeon bone heart violin piano concert melody drummer choir opera rhythm judge lawyer court
    contract verdict witness prison law engine wheel brake gearbox motor diesel highway bridge planet star telescope orbit comet
    gravity rocket satellite horse saddle stable farmer tractor harvest wheat barley teacher pupil exam lesson library book
    novel poem bank loan interest market share trader price inflation football goal referee stadium striker league trophy coach
"""
WORDS = _LINES.split()


def texts(count: int, seed: int = 7) -> list[str]:
    """Each of 12 words, half of them of one subject, so that there are near ones and far ones."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        at = draw.randrange(len(WORDS))
        near = [WORDS[(at + draw.randrange(8)) % len(WORDS)] for _ in range(6)]
        found.append(" ".join([*near, *draw.choices(WORDS, k=5), f"n{number}"]))
    return found


async def fill(
    db: "psycopg.Connection[Any]", lines: Sequence[str], namespace: str = "default"
) -> None:
    """One entry per line with metadata `n`, its number; as `store` would have written it. `db` is a
    session of the schema."""
    embedder = await load_embedder("static-256")
    vectors = await embedder.embed(lines)
    rows = (
        (
            namespace,
            f"{n}",
            "null",
            text,
            f'{{"n":{n}}}',
            len(text),
            0,
            0,
            vector_text(vector) if any(vector) else None,
            " ".join(fold_words(text)),
        )
        for n, (text, vector) in enumerate(zip(lines, vectors, strict=True))
    )
    with db.transaction(), db.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE raw (ns text, k text, v text, t text, m text, b int, c int, u int, vec text, w text)"
        )
        with cursor.copy("COPY raw FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(
            "INSERT INTO entries (namespace, key, value, text, metadata, bytes, created_at, updated_at, vector, words) "
            "SELECT ns, k, v, t, m, b, c, u, vec::vector, to_tsvector('english', w) FROM raw"
        )
        cursor.execute(
            "INSERT INTO metadata SELECT id, 'n', 'n', key::float8, NULL FROM entries WHERE namespace = %s",
            (namespace,),
        )
        cursor.execute(
            "INSERT INTO namespaces SELECT namespace, count(*), sum(bytes) FROM entries WHERE namespace = %s GROUP BY 1 "
            "ON CONFLICT (name) DO UPDATE SET entries = excluded.entries, bytes = excluded.bytes", (namespace,),
        )  # fmt: skip
        cursor.execute("DROP TABLE raw")
    db.execute("ANALYZE entries, metadata")
