"""E015: the lock was made for other packages."""

import re
from collections.abc import Iterator

from agentbox.manifest.features.npm_spec import npm_specs
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, View
from agentbox.manifest.rules.lock_input import LockInput

CODE, SINCE = "E015", "0.1"
TITLE = "lock does not cover the manifest"
WHY = """The image holds exactly the packages of the lock. A package that the manifest asks for and the lock does not
have would be absent without a word."""
READS = ("image.source", "image.suite", "image.systems", "image.extra_packages", *GATES)
BAD = """
[image]
suite = "trixie"
extra_packages = ["tree"]
"""
GOOD = """
[image]
suite = "trixie"
"""
_LOCK = LockInput(True, {"suite": "trixie", "debian": {"amd64": {"files": [{"name": "git"}]}}})
CONTEXT = {side: {"lock": _LOCK, "features": {}} for side in ("bad", "good")}
_ARCHITECTURES = {"x86_64-linux": "amd64", "aarch64-linux": "arm64"}


_SHOWN = 5


def check(view: View) -> Iterator[Finding]:
    """One finding for another suite, one for what is missing."""
    if view["image.source"] != "debian" or view.lock is None or not view.lock.present:
        return
    locked = view.lock.tables.get("suite", "")
    if locked != view["image.suite"]:
        yield view.finding(
            "image.suite",
            message=f'the lock was made for "{locked}", the manifest asks for "{view["image.suite"]}"',
            remedy="Run `agentbox lock`.",
        )
    absent = list(dict.fromkeys(_missing(view, view.lock)))
    if absent:
        shown = ", ".join(absent[:_SHOWN]) + (f" and {len(absent) - _SHOWN} more" if len(absent) > _SHOWN else "")
        yield view.finding("image", message=f"the lock has no {shown}", remedy="Run `agentbox lock`.")


def _missing(view: View, lock: LockInput) -> Iterator[str]:
    """`package (feature or key)`, for every target system."""
    wanted = view.systems
    architectures = [_ARCHITECTURES[system] for system in wanted] if wanted else lock.architectures
    for architecture in architectures:
        held = lock.names(f"debian.{architecture}")
        yield from (f"{name} (image.extra_packages)" for name in view["image.extra_packages"] if name not in held)
        for feature in view.on:
            yield from (f"{name} ({feature})" for name in view.features[feature].debian if name not in held)
    wheels, tarballs = {_canonical(name) for name in lock.names("wheels")}, lock.names("npm")
    for feature in view.on:
        asked = view.features[feature]
        yield from (f"{name} ({feature})" for name in asked.pypi if _canonical(_project(name)) not in wheels)
        specs = (spec for arch in architectures for spec in npm_specs(asked.npm, arch))
        yield from (f"{spec.name} ({feature})" for spec in specs if spec.name not in tarballs)


def _project(requirement: str) -> str:
    """The project of a requirement: what stands before extras, version or marker."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def _canonical(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
