"""The verbs, one file each, in the package of their subject. Each file holds a click command named
`command`.
"""
