"""One suite of tests a slot. An implementation's test file gives the fixtures and one class line.

Fixtures: `store` (make, open, reopen, kill_backend, worker), `adapter` (open), `clock` (ManualClock), `principals`.
A test is named `test_<clause>_<what>`.
"""
