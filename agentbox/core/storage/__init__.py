"""Local files of data that must survive a crash: SQLite, migrations, damage and loss. What a table
means stays with its owner.
"""
