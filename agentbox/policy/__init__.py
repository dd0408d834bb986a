"""What is allowed: patterns, profiles, policies, rights, limits and redaction. Pure decisions that
import core only.
"""
