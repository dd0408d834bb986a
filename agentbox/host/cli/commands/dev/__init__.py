"""Verbs for work on agentbox itself. One file a verb."""
