"""Is this host fit for a box, and is the box as its plan promises: one file a check, what to do about each finding, and the
repairs that can really be made.
"""
