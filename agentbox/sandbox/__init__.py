"""How one agent process is started, confined, monitored and ended. Only what concerns a single
process tree goes in; who may start what is decided by `agents`.
"""
