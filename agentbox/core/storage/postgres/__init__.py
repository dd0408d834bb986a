"""Access to PostgreSQL: trusted targets, a pool, migrations, typed errors. The SQL of a slot
belongs to the slot.
"""
