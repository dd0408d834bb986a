"""Output of agents on disk: stored in order, read from any cursor. Only streams of items go in."""
