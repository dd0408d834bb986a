"""Pods in a directory: bodies, index, locks and the tree below a root. Only code for the local file
system belongs here."""
