"""Engines start, stop and inspect a box: docker, or the process engine on a machine without one."""
