"""The command line: parsing, output, and the steps that commands share. A command goes into
`commands`.
"""
