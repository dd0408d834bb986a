"""A real sandbox with targets that must stay out of reach, and the program that tries them. Only
checks that run in production go in.
"""
