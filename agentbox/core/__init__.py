"""The foundation: errors, paths, time, records, HTTP serving, JSON-RPC, storage and Linux system
calls. Code that depends on a concept of the product belongs elsewhere.
"""
