"""Communication between the processes of a box: readiness notifications, restarts, supervisord, the
sentinel, secrets. Standard library and core only.
"""
