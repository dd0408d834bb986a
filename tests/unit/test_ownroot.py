"""A root of one's own, so that Nix's sandbox and container engines work inside a chroot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.core import mount_namespace

CHECKOUT = Path(mount_namespace.__file__).resolve().parents[2]
INSIDE = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from agentbox.core import mount_namespace
before = subprocess.run(["unshare", "--user", "true"], capture_output=True).returncode
after = subprocess.run(["unshare", "--user", "true"], capture_output=True, preexec_fn=mount_namespace.enter).returncode
names = subprocess.run(["ls", "/"], capture_output=True, text=True, preexec_fn=mount_namespace.enter).stdout.split()
print(mount_namespace.is_needed(), before != 0, after == 0, sorted(names) == sorted(os.listdir("/")))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="making a chroot needs root")
def test_inside_a_chroot_a_user_namespace_works_again(tmp_path: Path) -> None:
    """In a chroot the kernel refuses a user namespace; after `enter` it grants one, and the same root is seen."""
    script = f"""
set -e
for name in bin etc lib lib64 usr {CHECKOUT.parts[1]} {Path(sys.prefix).parts[1]}; do
  [ -e /$name ] && mkdir -p {tmp_path}/$name && mount --rbind /$name {tmp_path}/$name
done
mkdir {tmp_path}/proc && mount -t proc proc {tmp_path}/proc
exec chroot {tmp_path} {sys.executable} -c "$SCRIPT" {CHECKOUT}
"""
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, "SCRIPT": INSIDE},
    )  # fmt: skip
    assert done.stdout.strip() == "True True True True", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user never needs it")
def test_outside_a_chroot_nothing_is_done() -> None:
    """A process whose root is that of its mount namespace, or was made so, needs no preparation."""
    asked = "import sys; sys.path.insert(0, sys.argv[1]); from agentbox.core import mount_namespace; print(mount_namespace.preexec_function())"
    argv = [sys.executable, "-c", asked, str(CHECKOUT)]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=mount_namespace.preexec_function(),
    )
    assert done.stdout.strip() == "None"
