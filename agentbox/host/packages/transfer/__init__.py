"""Downloads: HTTP with this host's configuration, resumed, verified, cached by digest. Independent
of package managers.
"""
