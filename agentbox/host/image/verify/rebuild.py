"""Builds every derivation of the image a second time and compares the results."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.core.progress import Progress
from agentbox.host.image.nix import read_nix, run_nix
from agentbox.host.image.nixlog import store_name
from agentbox.host.image.verify.compare import Difference, first_of_images, first_of_members
from agentbox.host.image.verify.members import Archive, of_list, of_path, of_tar

_PACKED = "layer.tar.gz"
# Nix's words for it, 2.8 to 2.24.
_DIFFERS = re.compile(r"output '(?P<kept>/nix/store/[^']+)' differs(?: from '(?P<again>[^']+)')?")


def steps_of(flake: str, system: str) -> list[str]:
    """The names of the derivations between the locked files and the archive."""
    names: list[str] = json.loads(
        read_nix(["eval", "--json", f"{flake}#legacyPackages.{system}.steps", "--apply", "builtins.attrNames"])
    )
    return names


def differences(flake: str, system: str, progress: Progress, only: Sequence[str] = ()) -> Iterator[Difference]:
    """Rebuilds each derivation, or those named in `only` (`nix build --rebuild --keep-failed`), and yields what came out
    differently. Raises AgentboxError when a build fails for another reason.
    """
    for step in only or steps_of(flake, system):
        target = f"{flake}#legacyPackages.{system}.steps.{step}"
        run_nix(["build", target, "--no-link"], progress)
        try:
            run_nix(["build", target, "--no-link", "--rebuild", "--keep-failed"], progress, doing=f"rebuild {step}")
        except AgentboxError as error:
            found = _DIFFERS.search(error.message)
            if found is None:
                raise
            yield _named(step, Path(found["kept"]), Path(found["again"] or f"{found['kept']}.check"))


def _named(step: str, kept: Path, again: Path) -> Difference:
    """Compares by what the output is: a list of entries, a packed layer, an archive, a folder."""
    if not again.exists():
        return Difference(step, store_name(str(kept)), "", "the same again", "something else")
    if kept.name.endswith("-list"):
        found = first_of_members(step, of_list(kept), of_list(again))
    elif (kept / _PACKED).is_file():
        with (kept / _PACKED).open("rb") as one, (again / _PACKED).open("rb") as other:
            found = first_of_members(step, of_tar(one), of_tar(other))
    elif kept.suffix == ".tar":
        found = first_of_images(Archive(kept), Archive(again))
    else:
        found = first_of_members(step, of_path(kept), of_path(again))
    return found or Difference(step, "", "", "same files", "other bytes")
