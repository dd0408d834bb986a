"""Checks of this host and of the running box, with fixes and attacks. A check goes into
`checks`.
"""
