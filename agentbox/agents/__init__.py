"""The program agent-host: owns every agent process, its output and its history. Authorization of
HTTP calls is part of `api`."""
