"""What the kernel enforces on this box, compared with what the plan promises. Standard library and
core only: Stage A imports it.
"""
