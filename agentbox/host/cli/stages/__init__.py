"""The stages of `up`, one file each; `build` uses the first ones too. A stage reports progress and
ends in a value or a typed error.
"""
