"""One test suite per slot. The test file of an implementation defines fixtures and one class.

Fixtures: `store` (make, open, reopen, kill_backend, worker), `adapter` (open), `clock`
(ManualClock), `principals`. Tests are named `test_<clause>_<what>`.
"""
