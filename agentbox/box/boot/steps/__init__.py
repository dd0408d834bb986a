"""The phases of the boot, one file each. A phase reads the boot context, adds to it, and has a time
budget.
"""
