"""The JSON Schema of a manifest, its validation, and what an error means for the author. Keys
themselves are declared in `manifest/tables`.
"""
