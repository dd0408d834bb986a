"""Confinements that tests apply."""

from agentbox.core.linux.landlock import PathRule
from agentbox.sandbox.confinement import Confinement
from support.confined_process import EVERYWHERE

FREE = Confinement(grants=(EVERYWHERE,))
SYSTEM = tuple(
    PathRule(path, "rlx") for path in ("/usr", "/lib", "/lib64", "/bin", "/proc", "/etc")
)
