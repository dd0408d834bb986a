"""The last step of an uninstallation, done by a shell: the Python environment, packages that Python
needs, and the inventory itself, which must be there until everything else is gone.
"""

from __future__ import annotations

import shlex
from typing import Final

from agentbox.host.uninstall.debian_packages import BOOTSTRAP_FILE
from agentbox.host.uninstall.inventory import FILE_NAME
from agentbox.host.uninstall.removal import LastStep

ENVIRONMENT_FILES: Final = (".venv", ".venv.log", ".venv.lock", BOOTSTRAP_FILE)
_PURGE: Final = """\
log=$(mktemp -t agentbox-apt-XXXXXX)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
if ! apt-get -y -o DPkg::Lock::Timeout=300 purge {packages} >"$log" 2>&1; then
  echo "agentbox: cannot remove {packages}: $(grep '^E: ' "$log" || tail -n 1 "$log")" >&2
  echo "  Full output: $log. Run the command again; it goes on." >&2
  exit 1
fi
rm -f "$log"
"""


def last_script(step: LastStep, state_root: str, *, done: str, everything: bool) -> str:
    """Return a script for `sh -c` that prints `done` last. With `everything` nothing stays, so the
    inventory goes too.
    """
    lines = ["set -eu", "cd /", "umask 022"]
    if step.packages:
        lines.append(_PURGE.format(packages=shlex.join(step.packages)))
    for checkout in step.checkouts:
        where = shlex.quote(checkout)
        lines.append(f"if [ -f {shlex.quote(f'{checkout}/agentbox.sh')} ]; then")
        lines.append(
            f"  find {where} -name .venv -prune -o -type d -name __pycache__ -prune "
            "-exec rm -rf {} +"
        )
        files = [f"{checkout}/{name}" for name in ENVIRONMENT_FILES]
        if not (everything or step.packages):  # the packages that it names may still be installed
            files.remove(f"{checkout}/{BOOTSTRAP_FILE}")
        lines.append(f"  rm -rf -- {shlex.join(files)}")
        lines.append("fi")
    if step.files:
        lines.append(f"rm -f -- {shlex.join(step.files)}")
    if everything:
        lines.append(f"rm -f -- {shlex.quote(f'{state_root}/{FILE_NAME}')}")
    for directory in sorted(step.empty, key=lambda name: name.count("/"), reverse=True):
        where = shlex.quote(directory)
        lines.append(f'if [ -d {where} ] && [ -z "$(ls -A {where})" ]; then rmdir -- {where}; fi')
    lines.append(f"printf '%s\\n' {shlex.quote(done)}")
    return "\n".join(lines) + "\n"
