"""The evaluator behind `/ready` and its verdict. A requirement is a file in `requirements/` and a
row in `box_requirements`.
"""
