"""Pages for the operator's browser: files as they are served. No build step, and nothing from
elsewhere.
"""
