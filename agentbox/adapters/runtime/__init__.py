"""Around every adapter: configuration, life cycle, the pipeline of a call, metrics. Nothing that
belongs to a single slot goes in.
"""
