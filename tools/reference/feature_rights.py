"""The rights of a feature's programs in words, for docs/features.md."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentbox.manifest.features.model import Feature

_WORKSPACE = "/workspace"


def rights(feature: Feature) -> str:
    """Return one sentence per program; "" for a feature without programs."""
    return "; ".join(
        f"`{table['name']}`: {', '.join(_access_texts(feature, table))}"
        for table in feature.programs
    )


def _access_texts(feature: Feature, table: Mapping[str, Any]) -> Iterator[str]:
    sandbox = table.get("sandbox", {})
    workspace = [_WORKSPACE] if table.get("directory", "/").startswith(_WORKSPACE) else []
    state = [volume["target"] for volume in feature.volumes]
    yield from (
        f"`{path}`" for path in dict.fromkeys((*workspace, *state, *sandbox.get("folders", ())))
    )
    yield from (f"`{path}` by name" for path in sandbox.get("unlisted", ()))
    if "password" in table:
        yield "its password"
    yield from (f"the secret `{name}`" for name in sandbox.get("secrets", ()))
    if sandbox.get("token"):
        yield "the box's own token"
    if sandbox.get("sockets"):
        yield "sockets of the file system"
    yield "any network" if sandbox.get("network") else "no network except its ports"
