"""The test suites of this checkout: catalogue, runner and report, for `agentbox test`."""
