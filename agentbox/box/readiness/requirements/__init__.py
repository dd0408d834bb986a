"""The families of requirements behind `/ready`, one file each. A family names what is missing, and
never waits.
"""
