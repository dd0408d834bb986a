"""Calls and files of the Linux kernel that the standard library does not offer. One kernel
interface a module, with the standard library only.
"""
