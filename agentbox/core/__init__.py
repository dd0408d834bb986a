"""The foundation: errors, paths, time, records, HTTP serving, JSON-RPC, storage and calls of Linux.
Only code that knows no noun of the product goes in.
"""
