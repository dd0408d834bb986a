"""Repositories of restic: snapshots share what they have in common, and may be on another host."""
