"""What a manifest enables: feature files, ports, memory file systems, exceptions, and the choices
of this release. A feature is a file in `config/features/`.
"""
