"""Posture: what the kernel enforces on this box, against what the plan promises. Standard library only: Stage A runs it,
and the API again every minute.

A control is a name and a short text. Adding one is a row in `promised.py` and one in `measured.py`.
"""
