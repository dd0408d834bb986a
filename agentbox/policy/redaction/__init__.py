"""Redaction of data for the slots and the gateway: detectors, traversal, policy. Code that finds or
masks sensitive text.
"""
