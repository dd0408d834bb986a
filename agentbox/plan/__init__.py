"""The plan: manifest, features and lock file as plain data, from which everything is rendered. Pure
functions only; `agentbox.plan.model` needs the standard library alone.
"""
