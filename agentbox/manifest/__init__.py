"""The only reader of agentbox.toml: tables, schema, loading, findings, features and rules. What a
manifest means for a system belongs to the plan.
"""
