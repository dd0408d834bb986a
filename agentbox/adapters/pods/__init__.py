"""The pods slot."""
