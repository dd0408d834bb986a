"""The program agent-host: it owns every agent process, their output, and the record of what became
of them. Who may do what over HTTP is decided by `api`.
"""
