"""The four forms of a scorecard: text for people, JSON, SARIF 2.1.0, JUnit XML."""
