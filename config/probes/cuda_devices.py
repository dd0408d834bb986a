"""Counts the devices that the CUDA runtime library named on the command line can use."""

import ctypes
import sys

count = ctypes.c_int()
code = ctypes.CDLL(sys.argv[1]).cudaGetDeviceCount(ctypes.byref(count))
if code:
    sys.exit(f"cudaGetDeviceCount says {code}: no driver that fits, or no device")
print(f"{count.value} device{'' if count.value == 1 else 's'}")
