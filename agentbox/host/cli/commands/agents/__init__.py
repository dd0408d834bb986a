"""Verbs about agents, tasks and decisions on them. One file a verb."""
