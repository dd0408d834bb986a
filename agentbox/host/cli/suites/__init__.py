"""The test suites of this checkout: what they are, how they run, what they report. Only `agentbox
test` uses it.
"""
