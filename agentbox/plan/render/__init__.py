"""Renders the plan to text: one module per target. Each builds data and serialises it; decisions
belong to the plan.
"""
