"""What a manifest turns on: feature files, ports, memory file systems, exceptions, and the choices
of this release. A feature itself is a file in `config/features/`.
"""
