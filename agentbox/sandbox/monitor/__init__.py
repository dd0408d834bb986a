"""Monitors the limits of process trees: memory, processes, disk, CPU. One resource per module."""
