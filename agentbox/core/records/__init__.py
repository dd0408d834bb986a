"""Typed records, their JSON form and their JSON Schema. Code for all records only; the records of
the product belong elsewhere.
"""
