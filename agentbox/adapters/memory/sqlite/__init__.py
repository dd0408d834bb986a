"""Memory in a SQLite file: tables, vectors and words. Ranking without SQL belongs in
`adapters/memory`."""
