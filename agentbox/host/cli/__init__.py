"""The command line: parsing, output, and the steps that several verbs share. A verb goes into
`commands`.
"""
