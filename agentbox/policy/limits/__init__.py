"""All limits of an agent and of its host, with observed values. A new limit is a row of the
registry.
"""
