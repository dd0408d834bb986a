"""Typed records, their JSON form, and the JSON Schema derived from them. Only what works for every
record goes in, no record of the product.
"""
