"""Asks pip what it would install for a target, and reads its report (pip's "Installation Report", version 1)."""

import json
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from agentbox.host.packages.errors import ResolveError
from agentbox.host.packages.python.index import Index
from agentbox.host.packages.python.pip_config import PipConfig
from agentbox.host.packages.python.pip_failures import TRUST, untrusted_certificate
from agentbox.host.packages.python.target import Target
from agentbox.host.packages.tool import Result, run

_NO_MATCH = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")
_QUIET = ("--quiet", "--no-input", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", "-")


@dataclass(frozen=True)
class Chosen:
    """A wheel that pip chose. `name` is the normalised one."""

    name: str
    version: str
    file: str
    requires: tuple[Requirement, ...]


def choose(
    config: PipConfig,
    target: Target,
    wanted: Sequence[str],
    pins: Mapping[str, str],
    unused: Mapping[str, Sequence[str]],
) -> dict[str, Chosen]:
    """What pip would install, by name. Raises ResolveError when it finds no set of wheels; `pins` are constraints.

    The requirements that `unused` names, per distribution, are not in the `requires` of the answer.
    """
    done = _pip(config, target, wanted, pins)
    while done.code != 0 and pins:
        # A kept version that is gone is named by pip; otherwise nobody knows which one is in the way.
        gone = [canonicalize_name(name) for name in _NO_MATCH.findall(done.err)]
        pins = {name: version for name, version in pins.items() if gone and name not in gone}
        done = _pip(config, target, wanted, pins)
    if done.code != 0:
        raise _PipFailed(target, done)
    rows = json.loads(done.out)["install"]
    return {chosen.name: _without(chosen, unused.get(chosen.name, ())) for chosen in map(_chosen, rows)}


def explain(error: "ResolveError", index: Index) -> ResolveError:
    """The same failure, said as `has no wheel` where the index has the project but no wheel of it fits."""
    if isinstance(error, _PipFailed) and error.project and index.files(error.project):
        return ResolveError(
            f"cannot lock {error.project}: it has no wheel for Python {error.target.python} on {error.target.arch}",
            "Nothing is built from source; choose another version or project.",
        )
    return error


class _PipFailed(ResolveError):
    def __init__(self, target: Target, done: Result) -> None:
        untrusted = untrusted_certificate(done.err)
        hint = TRUST if untrusted else "Mend the requirement."
        super().__init__(f"cannot resolve Python packages for {target.arch}: {untrusted or done.why}", hint)
        self.target = target
        match = _NO_MATCH.search(done.err)
        self.project = match[1] if match else ""


def _pip(config: PipConfig, target: Target, wanted: Sequence[str], pins: Mapping[str, str]) -> Result:
    with tempfile.TemporaryDirectory(prefix="agentbox-pip-") as folder:
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in sorted(pins.items())))
        argv = [sys.executable, "-m", "pip", "install", *_QUIET, "--target", folder, "--constraint", str(constraints)]
        return run([*argv, *target.pip_flags, *wanted], extra=config.environment)


def _without(chosen: Chosen, unused: Sequence[str]) -> Chosen:
    requires = tuple(need for need in chosen.requires if canonicalize_name(need.name) not in unused)
    return replace(chosen, requires=requires)


def _chosen(row: Mapping[str, dict[str, object]]) -> Chosen:
    metadata, url = row["metadata"], str(row["download_info"]["url"])
    requires = metadata.get("requires_dist") or []
    assert isinstance(requires, list)
    return Chosen(
        name=canonicalize_name(str(metadata["name"])),
        version=str(metadata["version"]),
        file=unquote(urlsplit(url).path.rpartition("/")[2]),
        requires=tuple(Requirement(text) for text in requires),
    )
