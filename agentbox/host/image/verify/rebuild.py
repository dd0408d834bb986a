"""Builds every derivation of the image again and compares the results."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.core.progress import Progress
from agentbox.host.image.nix import read_nix, run_nix
from agentbox.host.image.nix_log import store_name
from agentbox.host.image.verify.compare import (
    Difference,
    first_image_difference,
    first_member_difference,
)
from agentbox.host.image.verify.members import Archive, list_members, path_members, tar_members

_PACKED = "layer.tar.gz"
# Nix's message, 2.8 to 2.24.
_DIFFERS = re.compile(r"output '(?P<kept>/nix/store/[^']+)' differs(?: from '(?P<again>[^']+)')?")


def step_names(flake: str, system: str) -> list[str]:
    """Return the names of the derivations between the locked files and the archive."""
    names: list[str] = json.loads(
        read_nix(
            [
                "eval",
                "--json",
                f"{flake}#legacyPackages.{system}.steps",
                "--apply",
                "builtins.attrNames",
            ]
        )
    )
    return names


def rebuild_differences(
    flake: str, system: str, progress: Progress, selected: Sequence[str] = ()
) -> Iterator[Difference]:
    """Rebuilds each derivation, or the selected ones (`nix build --rebuild --keep-failed`), and
    yields the differences. Raises AgentboxError if a build fails for another reason.
    """
    for step in selected or step_names(flake, system):
        target = f"{flake}#legacyPackages.{system}.steps.{step}"
        run_nix(["build", target, "--no-link"], progress)
        try:
            run_nix(
                ["build", target, "--no-link", "--rebuild", "--keep-failed"],
                progress,
                doing=f"rebuild {step}",
            )
        except AgentboxError as error:
            match = _DIFFERS.search(error.message)
            if match is None:
                raise
            yield _first_difference(
                step, Path(match["kept"]), Path(match["again"] or f"{match['kept']}.check")
            )


def _first_difference(step: str, original: Path, rebuilt: Path) -> Difference:
    """Compares by kind of output: a list of entries, a packed layer, an archive, a directory."""
    if not rebuilt.exists():
        return Difference(step, store_name(str(original)), "", "the same again", "something else")
    if original.name.endswith("-list"):
        difference = first_member_difference(step, list_members(original), list_members(rebuilt))
    elif (original / _PACKED).is_file():
        with (
            (original / _PACKED).open("rb") as original_layer,
            (rebuilt / _PACKED).open("rb") as rebuilt_layer,
        ):
            difference = first_member_difference(
                step, tar_members(original_layer), tar_members(rebuilt_layer)
            )
    elif original.suffix == ".tar":
        difference = first_image_difference(Archive(original), Archive(rebuilt))
    else:
        difference = first_member_difference(step, path_members(original), path_members(rebuilt))
    return difference or Difference(step, "", "", "same files", "other bytes")
