"""Resolves what an image is made of, and brings it into the Nix store."""

from agentbox.lock.bring import Bringer, Fitting, lock_path
from agentbox.lock.changes import Change, Changes
from agentbox.lock.errors import FetchError, NoNetworkError, NotServedError, PrerequisiteError, ResolveError
from agentbox.lock.fetch import Fetched, fetch_all, roots_folder
from agentbox.lock.hostfiles import stale_files, update_files
from agentbox.lock.nixstore import nix_environment
from agentbox.lock.relock import LOCK_NAME, Relocked, check_inputs, relock, require_system
from agentbox.lock.wanted import host_system, inputs_of

__all__ = [
    "LOCK_NAME",
    "Bringer",
    "Change",
    "Changes",
    "FetchError",
    "Fetched",
    "Fitting",
    "NoNetworkError",
    "NotServedError",
    "PrerequisiteError",
    "Relocked",
    "ResolveError",
    "check_inputs",
    "fetch_all",
    "host_system",
    "inputs_of",
    "lock_path",
    "nix_environment",
    "relock",
    "require_system",
    "roots_folder",
    "stale_files",
    "update_files",
]
