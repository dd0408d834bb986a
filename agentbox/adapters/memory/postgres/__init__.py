"""Memory in a PostgreSQL schema with pgvector: tables, vectors and words. Ranking without SQL
belongs in `adapters/memory`."""
