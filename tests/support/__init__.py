"""Contract suites, fault injection and test helpers. The product never imports this."""
