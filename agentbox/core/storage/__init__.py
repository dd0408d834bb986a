"""Durable local storage: SQLite, migrations, damage and loss. The meaning of tables belongs to
their owners.
"""
