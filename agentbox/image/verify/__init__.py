"""Derives an image again and names the first thing that differs."""
