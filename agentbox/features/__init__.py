"""What a manifest turns on: feature files, ports, memory file systems, exceptions, and the choices of this release."""

from agentbox.features.available import AVAILABLE, UNREAD, gates
from agentbox.features.corpus import corpus_dir, selected, skill_files, skill_names
from agentbox.features.exceptions import BUILTIN, Delta, effective_delta, seccomp_files, widenings
from agentbox.features.loader import ALWAYS, enabled, features_dir, is_on, load_features
from agentbox.features.model import ExceptionNeed, Feature, FixedPort, Gate
from agentbox.features.ports import Listener, free_port, port_table
from agentbox.features.slots import slot_class
from agentbox.features.tmpfs import baseline, total_bytes
from agentbox.manifest import schema_dir

__all__ = [
    "ALWAYS",
    "AVAILABLE",
    "BUILTIN",
    "UNREAD",
    "Delta",
    "ExceptionNeed",
    "Feature",
    "FixedPort",
    "Gate",
    "Listener",
    "baseline",
    "corpus_dir",
    "effective_delta",
    "enabled",
    "features_dir",
    "free_port",
    "gates",
    "is_on",
    "load_features",
    "port_table",
    "schema_dir",
    "seccomp_files",
    "selected",
    "skill_files",
    "skill_names",
    "slot_class",
    "total_bytes",
    "widenings",
]
