"""Broken boxes: at least one for each id whose test could pass without checking."""
