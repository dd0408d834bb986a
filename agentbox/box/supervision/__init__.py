"""How the processes of a box tell each other that they work: notifications, restarts, supervisord,
the sentinel, secrets. Standard library and core only.
"""
