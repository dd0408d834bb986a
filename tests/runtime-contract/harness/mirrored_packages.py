"""The packages that a mirror on loopback serves."""

from __future__ import annotations

import os

from harness.mirror import Deb, Wheel

BIG = 300_000
SEED = [
    Deb("busybox-static", "1:1.37.0-1", files={"usr/bin/busybox": b"busybox"}),
    Deb("bash-static", "5.2-1", files={"usr/bin/bash-static": b"bash"}),
]
DEBS = [
    Deb("git", "1:2.47.3-0", depends="libc6 (>= 2.38), perl"),
    Deb("perl", "5.40.1-6", files={"usr/bin/perl": os.urandom(BIG)}),
    Deb("libc6", "2.41-12"),
    Deb("python3", "3.13.5-1", depends="libc6"),
    *SEED,
]
WHEELS = [
    Wheel(
        "uvicorn",
        "0.54.0",
        ("click>=8", 'tomli; python_version < "3.12"', 'only-new; python_version >= "3.13"'),
    ),
    Wheel("click", "8.5.1"),
    Wheel("tomli", "2.0"),
    Wheel("only-new", "1.0"),
    Wheel("installer", "1.1.0"),
]
