"""Memory in a SQLite file: tables, vectors and words. Ranking that needs no SQL goes into
`adapters/memory`.
"""
