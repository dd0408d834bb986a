"""Mutants of the rendered compose file: one line of the baseline dropped or weakened."""

from test_rc_015_hardening_from_outside import engine_says_baseline
from test_rc_016_hardening_from_inside import inside_is_baseline

from mutants.mutant import Mutant, create, instead, start, without

FROM_OUTSIDE = (
    ("user", instead("user: '1000:1000'", "user: '0:0'"), "user"),
    ("read-only", instead("read_only: true\n    security_opt", "read_only: false\n    security_opt"), "read_only"),
    ("capabilities", instead("cap_drop:\n      - ALL", "cap_drop:\n      - NET_RAW"), "cap_drop"),
    ("privileged", instead("privileged: false", "privileged: true"), "privileged"),
    ("no-new-privileges", without("- 'no-new-privileges:true'"), "no-new-privileges"),
    ("seccomp", without("- 'seccomp=./seccomp/agentbox.json'"), "no seccomp list"),
    ("tmpfs", without("- '/var/run:mode=755,size=16M,uid=1000,gid=1000,noexec,nosuid,nodev'"), "tmpfs"),
    ("tmpfs-exec", instead("mode=1777,size=256M,uid=1000,gid=1000,noexec,", "mode=1777,size=256M,uid=1000,gid=1000,"), "tmpfs /tmp"),
    ("memory", without("memswap_limit: '4096m'"), "memory limits"),
    ("pids", without("pids_limit: 2048"), "pids_limit"),
    ("core", without("core: 0"), "ulimits"),
    ("address", instead("- '127.0.0.1:19090:19090'", "- '19090:19090'"), "published address"),
    ("log", without("max-size: '10m'"), "max-size"),
    ("ipc", instead("ipc: private", "ipc: shareable"), "namespaces"),
)  # fmt: skip
FROM_INSIDE = (
    ("capabilities", instead("cap_drop:\n      - ALL", "cap_drop:\n      - NET_RAW"), "CapInh|CapBnd"),
    ("no-new-privileges", without("- 'no-new-privileges:true'"), "no-new-privs"),
    ("seccomp", without("- 'seccomp=./seccomp/agentbox.json'"), "seccomp fingerprint"),
    ("tmpfs-exec", instead("mode=1777,size=256M,uid=1000,gid=1000,noexec,", "mode=1777,size=256M,uid=1000,gid=1000,exec,"), "/tmp"),
    ("nofile", instead("hard: 16384\n        soft: 16384", "hard: 2048\n        soft: 2048"), "nofile"),
)  # fmt: skip

MUTANTS = (
    *(
        Mutant("RC-015", name, engine_says_baseline, says, {"edit": edit}, create)
        for name, edit, says in FROM_OUTSIDE
    ),
    *(
        Mutant("RC-016", name, inside_is_baseline, says, {"edit": edit}, start)
        for name, edit, says in FROM_INSIDE
    ),
)
