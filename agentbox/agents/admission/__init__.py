"""Decides whether an agent may be started: definition, limits, grants, capacity. Pure: reads what
the registry hands in, starts and stores nothing."""
