"""The only way to a PostgreSQL server: trusted targets, a pool, migrations, typed errors. SQL of a
slot stays with the slot.
"""
