"""The attack cases by what they attack, one suite a module."""
