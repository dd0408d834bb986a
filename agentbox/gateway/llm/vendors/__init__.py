"""The protocols of the vendors of models, one module each. A module translates, it decides no right
and no budget.
"""
