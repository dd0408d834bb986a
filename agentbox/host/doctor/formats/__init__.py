"""The formats of a report: text, JSON, SARIF 2.1.0, JUnit XML. One format a module."""
