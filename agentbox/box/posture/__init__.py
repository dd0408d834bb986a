"""The controls that the kernel enforces on this box, compared with the plan. Standard library and
core only: Stage A imports it.
"""
