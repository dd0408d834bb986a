"""The stages of `up`, one file each; `build` uses the first ones too."""
