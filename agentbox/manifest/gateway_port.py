"""The one port of a box that no manifest sets."""

from typing import Final

GATEWAY_PORT: Final = 9093
"""Loopback port of the gateway. Reserved while the orchestrator is on, whoever runs the agents."""
