"""Plan in, text out: one module a target. Each builds data and serialises at the end; nothing is
decided here.
"""
