"""Generations of a box: what ran and on what, so that an operator can go back. Records only; the
stages of `up`, `upgrade` and `rollback` use them.
"""
