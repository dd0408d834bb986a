"""The plan: manifest, features and lock file turned into plain data, from which everything else is
rendered. Only pure functions go in; `agentbox.plan.model` needs the standard library alone.
"""
