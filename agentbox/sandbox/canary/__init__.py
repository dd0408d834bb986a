"""A real sandbox with targets that must stay out of reach, and the program that tries to reach
them. Only checks that run in production belong here.
"""
