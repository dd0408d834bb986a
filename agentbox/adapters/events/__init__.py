"""The events slot."""
