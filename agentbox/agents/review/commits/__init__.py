"""Commits that an agent made in its branch: what of them may be taken, and as what."""
