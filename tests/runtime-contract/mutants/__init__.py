"""Broken boxes: at least one for each id whose test could pass by looking away."""
