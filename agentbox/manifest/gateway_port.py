"""The port of the gateway, which no key sets."""

from typing import Final

GATEWAY_PORT: Final = 9093
"""Loopback port of the gateway. Reserved while the orchestrator is on, whichever program runs the
agents.
"""
