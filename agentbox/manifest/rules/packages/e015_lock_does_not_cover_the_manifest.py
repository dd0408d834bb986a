"""E015: the lock is for other packages."""

import re
from collections.abc import Iterator

from agentbox.manifest.features.npm_spec import npm_specs
from agentbox.manifest.findings import Finding
from agentbox.manifest.rules.context import GATES, RuleContext
from agentbox.manifest.rules.unvalidated_lock import UnvalidatedLock

CODE, SINCE = "E015", "0.1"
TITLE = "lock does not cover the manifest"
REASON = """\
The image contains exactly the locked packages. A package that the manifest needs and the
lock lacks would silently be missing."""
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
_LOCK = UnvalidatedLock(
    True, {"suite": "trixie", "debian": {"amd64": {"files": [{"name": "git"}]}}}
)
CONTEXT = {side: {"lock": _LOCK, "features": {}} for side in ("bad", "good")}
_ARCHITECTURES = {"x86_64-linux": "amd64", "aarch64-linux": "arm64"}


_MAX_LISTED = 5


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding for a different suite, one for missing packages."""
    if context["image.source"] != "debian" or context.lock is None or not context.lock.present:
        return
    locked = context.lock.tables.get("suite", "")
    if locked != context["image.suite"]:
        yield context.finding(
            "image.suite",
            message=f'the lock was made for "{locked}", the manifest asks for '
            f'"{context["image.suite"]}"',
            remedy="Run `agentbox lock`.",
        )
    missing = list(dict.fromkeys(_missing(context, context.lock)))
    if missing:
        listing = ", ".join(missing[:_MAX_LISTED]) + (
            f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        )
        yield context.finding(
            "image", message=f"the lock has no {listing}", remedy="Run `agentbox lock`."
        )


def _missing(context: RuleContext, lock: UnvalidatedLock) -> Iterator[str]:
    """`package (feature or key)`, for every target system."""
    systems = context.systems
    architectures = (
        [_ARCHITECTURES[system] for system in systems] if systems else lock.architectures
    )
    for architecture in architectures:
        locked_names = lock.names(f"debian.{architecture}")
        yield from (
            f"{name} (image.extra_packages)"
            for name in context["image.extra_packages"]
            if name not in locked_names
        )
        for feature in context.enabled_features:
            yield from (
                f"{name} ({feature})"
                for name in context.features[feature].debian
                if name not in locked_names
            )
    wheels, tarballs = {_canonical(name) for name in lock.names("wheels")}, lock.names("npm")
    for feature in context.enabled_features:
        definition = context.features[feature]
        yield from (
            f"{name} ({feature})"
            for name in definition.pypi
            if _canonical(_project(name)) not in wheels
        )
        specs = (spec for arch in architectures for spec in npm_specs(definition.npm, arch))
        yield from (f"{spec.name} ({feature})" for spec in specs if spec.name not in tarballs)


def _project(requirement: str) -> str:
    """The project name of a requirement, without extras, version or marker."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def _canonical(name: str) -> str:
    """PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
