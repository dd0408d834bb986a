"""Builds an image again and names the first difference. Only comparisons go in."""
