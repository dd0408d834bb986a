"""Branches: an agent's own copy of the workspace, what it changed there, and the operator's decision on it."""
