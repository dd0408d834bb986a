"""Downloads: HTTP as this host is configured for it, resumed, checked, cached by digest. No package
manager is known here.
"""
