"""The JSON Schema of a manifest, validation, and explanations of errors. Keys are declared in
`manifest/tables`.
"""
