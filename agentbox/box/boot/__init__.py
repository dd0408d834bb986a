"""The boot: Stage A as PID 1, and Stage B beside the API. Stage A imports the standard library,
core, `plan.model` and box only.
"""
