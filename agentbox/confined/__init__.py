"""Programs of features start here: confined first, then themselves, under the same pid (ADR 0033)."""
