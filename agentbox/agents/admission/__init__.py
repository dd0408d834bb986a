"""From a request to an agent that may be started: definition, policy, limits, constraints,
environment. Decisions only; what runs is in `runs`.
"""
