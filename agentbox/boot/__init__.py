"""The boot: Stage A as PID 1, Stage B beside the API, and the seal that judges both."""
