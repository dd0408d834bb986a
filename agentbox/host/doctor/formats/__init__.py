"""Report formats: text, JSON, SARIF 2.1.0, JUnit XML. One module per format."""
