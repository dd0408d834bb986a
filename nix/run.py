"""Runs a module inside a derivation: `run.py FOLDERS MODULE ARGUMENTS…`, FOLDERS separated by colons.

`python -I` reads no PYTHONPATH and adds no folder of its own, so the derivation names each folder here. An argument
`@name` stands for the file that Nix made of the attribute `name` (passAsFile), whose path only the environment has.
"""

import os
import runpy
import sys

folders, module, *arguments = sys.argv[1:]
sys.path[:0] = folders.split(":")
sys.argv[1:] = [
    os.environ[f"{each[1:]}Path"] if each.startswith("@") else each for each in arguments
]
runpy.run_module(module, run_name="__main__", alter_sys=True)
