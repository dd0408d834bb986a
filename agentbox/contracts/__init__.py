"""The product's interfaces: per resource its records, its Protocol and its operations.
Implementations and transports belong elsewhere.
"""
