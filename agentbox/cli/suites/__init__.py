"""The test suites of this checkout: what they are, how they run beside each other, what they report."""
