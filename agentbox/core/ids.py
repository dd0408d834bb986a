"""UUID version 7 (RFC 9562 5.7): 48 bits of milliseconds, then random bits, so that ids sort by
time. In the standard library from Python 3.14; Stage A of the boot may import the standard library
only.
"""

import os
import time
import uuid


def uuid7() -> str:
    """A new id in canonical text form."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def new_trace_id() -> str:
    """16 random bytes in hexadecimal, never all zero (W3C Trace Context 3.2.2.3)."""
    return (os.urandom(16).hex().lstrip("0") or "1").zfill(32)


def traceparent(trace_id: str) -> str:
    """The `traceparent` header for a request of that trace."""
    return f"00-{trace_id}-{os.urandom(7).hex()}01-00"
