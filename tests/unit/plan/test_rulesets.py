"""Feature file -> what its programs may use: for every file, and what no file may request."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from support.plans import plan_of

from agentbox.core.paths import Paths
from agentbox.manifest.features.loader import load_features
from agentbox.plan.errors import PlanError
from agentbox.plan.features.additions import build_contribution
from agentbox.plan.model import Device, Plan, Program, Ruleset, SecurityExceptionPlan, VolumePlan

FEATURES: Final = {name: row for name, row in load_features().items() if row.programs}
BOX: Final = Paths()
WORK: Final = ("/workspace",)
VALUES: Final[Mapping[str, Any]] = {
    "desktop.port": 5901,
    "desktop.resolution": "1280x720",
    "desktop.password_env": "",
    "api.token_env": "API",
    "sovereign_mesh.telegram_mirror.bot_token_env": "BOT",
    "sovereign_mesh.telegram_mirror.chat_id_env": "CHAT",
}
EDITOR: Final[Mapping[str, Any]] = {
    "name": "e", "priority": 60, "argv": ["/usr/bin/e"], "ready": {"by": "state"}, "directory": "/workspace",
}  # fmt: skip
OLLAMA: Final = {
    "ollama": Ruleset(folders=("/var/lib/agentbox/ollama",), listens=(11434,), network=True),
}
WANTED: Final[Mapping[str, Mapping[str, Ruleset]]] = {
    "comfyui_builtin": {
        "comfyui": Ruleset(
            folders=(*WORK, "/var/lib/agentbox/comfyui"), runs=WORK, listens=(8188,), network=True
        ),
    },
    "desktop_wayland": {
        "desktop-session": Ruleset(
            folders=(*WORK, "/run/user/1000", "/tmp/.X11-unix"),
            runs=WORK,
            unlisted=("/tmp",),
            listens=(5901,),
            network=True,
            sockets=True,
        ),
        "desktop": Ruleset(
            folders=("/run/agentbox/desktop", "/run/user/1000", "/var/lib/agentbox/desktop"),
            reads=("/run/agentbox/secrets/desktop-password",),
            listens=(5901,),
            sockets=True,
        ),
    },
    "desktop_x11": {
        "desktop": Ruleset(
            folders=("/run/agentbox/desktop", "/tmp/.X11-unix"),
            unlisted=("/tmp",),
            reads=("/run/agentbox/secrets/desktop-password",),
            listens=(5901,),
            sockets=True,
        ),
        "desktop-session": Ruleset(
            folders=(*WORK, "/run/agentbox/desktop"),
            runs=WORK,
            listens=(5901,),
            network=True,
            sockets=True,
        ),
    },
    "jupyter": {
        "jupyter": Ruleset(
            folders=(*WORK, "/var/lib/agentbox/jupyter"),
            runs=WORK,
            reads=("/run/agentbox/secrets/jupyter-token",),
            listens=(8888,),
            network=True,
        ),
    },
    "ollama_cuda": OLLAMA,
    "ollama_rocm": OLLAMA,
    "mcp_host": {
        "mcp-host": Ruleset(
            folders=("/run/agentbox/mcp-host", "/var/lib/agentbox/mcp-host"),
            reads=(
                "/run/agentbox/boot.json",
                "/run/agentbox/plan.json",
                "/run/agentbox/connections/mcp-host",
            ),
            sockets=True,
        ),
    },
    "telegram_mirror": {
        "telegram-mirror": Ruleset(
            folders=("/var/lib/agentbox/telegram",),
            reads=(
                *(
                    "/run/secrets/BOT",
                    "/run/agentbox/secrets/BOT",
                    "/run/secrets/CHAT",
                    "/run/agentbox/secrets/CHAT",
                ),
                *("/run/secrets/API", "/run/agentbox/secrets/API"),
                *("/run/secrets/MANAGEMENT_API_KEY", "/run/agentbox/secrets/MANAGEMENT_API_KEY"),
                *(
                    "/var/lib/agentbox/secrets/mgmt-key",
                    "/run/agentbox/boot.json",
                    "/run/agentbox/plan.json",
                ),
            ),
            network=True,
        ),
    },
}
SHARED: Final = {"desktop_wayland": {"/run/user/1000"}, "desktop_x11": {"/run/agentbox/desktop"}}
"""What the two programs of a desktop have in common."""


def _rulesets(
    name: str, exceptions: tuple[SecurityExceptionPlan, ...] = ()
) -> Mapping[str, Ruleset]:
    return build_contribution([FEATURES[name]], VALUES, "x86_64-linux", "3.13", exceptions).rulesets


def test_no_file_is_left_out() -> None:
    """A feature that gets a program gets a row above."""
    assert set(WANTED) == set(FEATURES)


@pytest.mark.parametrize("name", FEATURES)
def test_what_each_file_means(name: str) -> None:
    """To the last directory."""
    assert _rulesets(name) == WANTED[name]


@pytest.mark.parametrize("name", FEATURES)
def test_nothing_of_the_control_plane_and_nothing_of_another_feature(name: str) -> None:
    """No directory covers, or is inside, a directory of the control plane or of another feature;
    secrets are single files."""
    theirs = {
        place
        for other in FEATURES
        if {row["name"] for row in FEATURES[other].programs}
        != {row["name"] for row in FEATURES[name].programs}
        for ruleset in _rulesets(other).values()
        for place in ruleset.folders
        if place not in WORK
    }
    closed = {str(place) for place in (
        BOX.run, BOX.mounted_secrets, BOX.moved_secrets, BOX.state, BOX.state_secrets, BOX.branches, BOX.logs,
        BOX.ready_dir, BOX.starts_dir, *(BOX.slot(slot) for slot in ("events", "beads", "pods", "memory", "orchestrator", "gateway")),
    )}  # fmt: skip
    for ruleset in _rulesets(name).values():
        for place in (*ruleset.folders, *ruleset.unlisted):
            assert not [other for other in closed if _covers(place, other)], place
        for place in ruleset.folders:
            desktops = {"desktop_wayland", "desktop_x11"}  # one box has one of them
            apart = theirs - ({place} if name in desktops else set())
            assert not [
                other for other in apart if _covers(place, other) or _covers(other, place)
            ], place
        assert not closed & set(ruleset.reads)


def _covers(place: str, other: str) -> bool:
    return other == place or other.startswith(f"{place}/")


def test_only_programs_of_agentbox_read_its_token() -> None:
    """And the password of each is its own."""
    for name in FEATURES:
        for ruleset in _rulesets(name).values():
            assert (str(BOX.api_key) in ruleset.reads) == (name == "telegram_mirror")


def test_an_exception_gives_devices_to_all_and_volumes_to_its_own_feature() -> None:
    """A directory that the operator adds to the desktop belongs to the desktop."""
    given = (
        SecurityExceptionPlan(
            key="desktop",
            reason="x",
            volumes=(
                VolumePlan(source="a", target="/data"),
                VolumePlan(source="b", target="/ro", read_only=True),
            ),
        ),
        SecurityExceptionPlan(
            key="gpu-cuda",
            reason="x",
            device_requests=(Device(driver="nvidia", count=-1, capabilities=("gpu",)),),
        ),
        SecurityExceptionPlan(key="gpu-rocm", reason="x", devices=("/dev/kfd", "/dev/dri")),
    )
    session, notebook = (
        _rulesets("desktop_x11", given)["desktop-session"],
        _rulesets("jupyter", given)["jupyter"],
    )
    assert ("/data" in session.folders, "/ro" in session.folders, "/ro" in session.reads) == (
        True,
        False,
        True,
    )
    assert not {"/data", "/ro"} & {*notebook.folders, *notebook.reads}
    assert session.devices == notebook.devices == ("/dev/dri", "/dev/kfd", "/dev/nvidia*")


def test_the_plan_has_a_ruleset_for_each_program_of_a_feature_and_for_backup() -> None:
    """They are equal after a round trip through JSON."""
    plan = plan_of("[skills.data_science]\njupyter = true\n")
    assert set(plan.rulesets) == {"backup", "jupyter"} < {program.name for program in plan.programs}
    assert Plan.from_json(plan.to_json()).rulesets == plan.rulesets
    assert all(isinstance(program, Program) for program in plan.programs)


def test_a_word_in_a_sandbox_table_must_stand_for_something() -> None:
    """As everywhere in a feature file."""
    from agentbox.manifest.features.model import Feature

    feature = Feature(
        name="editor", programs=({**EDITOR, "sandbox": {"secrets": ["{no.such_env}"]}},)
    )
    with pytest.raises(PlanError, match=r"feature editor: \{no.such_env\}"):
        build_contribution([feature], VALUES, "x86_64-linux", "3.13")
