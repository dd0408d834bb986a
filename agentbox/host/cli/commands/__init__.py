"""The commands, one file each, in packages by subject. Each file defines a click command named
`command`.
"""
