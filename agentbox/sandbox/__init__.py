"""How one agent process is started, confined, monitored and ended. Only what concerns a single
process tree belongs here; `agents` decides who may start what.
"""
