"""Builds every derivation of the image a second time and compares the results."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from agentbox.errors import AgentboxError
from agentbox.image.nix import read_nix, run_nix
from agentbox.image.nixlog import store_name
from agentbox.image.verify.compare import Difference, first_of_members
from agentbox.image.verify.members import of_path, of_tar
from agentbox.progress import Progress

# Nix's words for it, 2.8 to 2.24.
_DIFFERS = re.compile(r"output '(?P<kept>/nix/store/[^']+)' differs(?: from '(?P<again>[^']+)')?")


def steps_of(flake: str, system: str) -> list[str]:
    """The names of the derivations between the locked files and the archive."""
    names: list[str] = json.loads(
        read_nix(["eval", "--json", f"{flake}#legacyPackages.{system}.steps", "--apply", "builtins.attrNames"])
    )
    return names


def differences(flake: str, system: str, progress: Progress) -> Iterator[Difference]:
    """Rebuilds each derivation (`nix build --rebuild --keep-failed`) and yields what came out differently.

    They must have been built before. Raises AgentboxError when a build fails for another reason.
    """
    for step in steps_of(flake, system):
        target = f"{flake}#legacyPackages.{system}.steps.{step}"
        run_nix(["build", target, "--no-link"], progress)
        try:
            run_nix(["build", target, "--no-link", "--rebuild", "--keep-failed"], progress, doing=f"rebuild {step}")
        except AgentboxError as error:
            found = _DIFFERS.search(error.hint)
            if found is None:
                raise
            yield _named(step, Path(found["kept"]), Path(found["again"] or f"{found['kept']}.check"))


def _named(step: str, kept: Path, again: Path) -> Difference:
    if not again.exists():
        return Difference(step, store_name(str(kept)), "", "the same again", "something else")
    packed = "layer.tar.gz"
    if (kept / packed).is_file():
        with (kept / packed).open("rb") as one, (again / packed).open("rb") as other:
            return first_of_members(step, of_tar(one), of_tar(other)) or Difference(
                step, packed, "", "same files", "other bytes"
            )
    found = first_of_members(step, of_path(kept), of_path(again))
    return found or Difference(step, "", "", "same files", "other modes")
