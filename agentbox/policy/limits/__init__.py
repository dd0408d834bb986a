"""Every limit of an agent and of its host, with what was seen of each. A new limit is a row of the
registry.
"""
