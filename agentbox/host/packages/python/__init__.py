"""Python packages: index, wheels, markers, pip. Only formats of Python packaging go in."""
