"""Turns a request into an agent that may be started: definition, policy, limits, constraints,
environment. Makes decisions only; processes are started in `runs`."""
