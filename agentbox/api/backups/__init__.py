"""Backups of a running box: the cut of one moment, its staging, the program that makes a snapshot
of it, and the schedule.
"""
