"""Slots that are served by the API of another box. One module per slot."""
