"""The interfaces of the product: for each resource its records, its Protocol and its operations. No
implementation and no transport goes in.
"""
