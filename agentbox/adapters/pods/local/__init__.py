"""Pods in a directory: bodies, index, locks and the tree below a root. Only what touches the local
file system goes in.
"""
