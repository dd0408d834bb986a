"""Memory in a schema of PostgreSQL with pgvector: tables, vectors and words. Ranking that needs no
SQL goes into `adapters/memory`.
"""
