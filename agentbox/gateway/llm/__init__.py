"""The model gateway: the providers' own HTTP with the box's key, allowed calls and budgets. What is
special to a vendor goes into `vendors`.
"""
