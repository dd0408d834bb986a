"""Sandboxes: agents without a program of their own, in which programs are run."""
