"""devcontainer: it points at the compose service, with the terms of the published reference."""

import json

from support.plans import plan_of

from agentbox.plan.render.compose import compose
from agentbox.plan.render.devcontainer import devcontainer

# containers.dev, "Dev Container metadata reference", general and Compose properties: type of each that is written.
REFERENCE: dict[str, type | tuple[str, ...]] = {
    "name": str,
    "dockerComposeFile": str,
    "service": str,
    "initializeCommand": str,
    "overrideCommand": bool,
    "updateRemoteUserUID": bool,
    "remoteUser": str,
    "workspaceFolder": str,
    "userEnvProbe": ("none", "interactiveShell", "loginShell", "loginInteractiveShell"),
    "shutdownAction": ("none", "stopCompose"),
}


def test_every_key_is_one_of_the_reference_with_its_type() -> None:
    """The command line of the reference implementation reads it in the runtime contract; types are checked here."""
    found = json.loads(devcontainer(plan_of()))
    assert set(found) == set(REFERENCE)
    for name, value in found.items():
        known = REFERENCE[name]
        assert value in known if isinstance(known, tuple) else isinstance(value, known), name


def test_secret_files_are_made_only_where_there_are_secrets() -> None:
    """An existing value is not touched: `touch -a` changes no byte."""
    assert "touch -a secrets/AGENTBOX_API_TOKEN secrets/AGENTBOX_MESH_TOKEN" in devcontainer(
        plan_of()
    )
    assert "initializeCommand" not in json.loads(
        devcontainer(plan_of('[api]\ntoken_env = ""\n[mesh]\ntoken_env = ""\n'))
    )


def test_it_names_the_service_of_the_compose_file() -> None:
    """And the user of its image, never root."""
    found = json.loads(devcontainer(plan_of()))
    assert f"services:\n  {found['service']}:" in compose(plan_of())
    assert found["remoteUser"] == "agentbox"
