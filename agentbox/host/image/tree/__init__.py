"""Lays out one layer as a directory of files and a list of what each of them is. Runs inside
derivations.
"""
