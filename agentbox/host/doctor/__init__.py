"""Is this host fit for a box, and is the box as its plan promises. The report and its fixes stand
here; a check goes into `checks`.
"""
