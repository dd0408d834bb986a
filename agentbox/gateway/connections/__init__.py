"""Connections to the one port: which protocol, whose, how many. Nothing is decided about requests."""
