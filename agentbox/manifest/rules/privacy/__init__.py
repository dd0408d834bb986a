"""Rules about redaction and its models. One file per rule, named after its code."""
