"""The measures of the code's structure, each taken from the files of the tree."""
