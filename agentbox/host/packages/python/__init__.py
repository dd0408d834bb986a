"""Python packages: index, wheels, markers, pip. Only formats of Python packaging belong here."""
