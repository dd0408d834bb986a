"""Debian packages: sources, keyrings, closures, .deb files. Only apt and dpkg formats belong
here.
"""
