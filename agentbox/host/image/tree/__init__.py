"""Lays out one layer as a directory of files and a list of their attributes. Runs inside
derivations.
"""
