"""Rebuilds an image and reports the first difference. Only comparisons belong here."""
