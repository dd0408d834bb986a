"""Contract suites, fault injection and helpers for the tests of implementations. The product never
imports this.
"""
