"""Redaction in front of the slots and the gateway: detectors, the walk over a value, the policy.
Only code that finds or masks sensitive text goes in.
"""
