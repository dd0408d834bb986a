"""The deltas of the seven exceptions."""

import pytest

from agentbox.manifest.features.model import Feature, Gate, SecurityExceptionNeed
from agentbox.manifest.features.security_exceptions import (
    BUILTIN,
    SecurityExceptionDelta,
    active_keys,
    effective_delta,
    open_gates,
    union,
    widenings,
)
from agentbox.manifest.load import parse
from agentbox.manifest.model import Model
from agentbox.manifest.schema.generator import properties
from agentbox.manifest.tables.security import ExceptionKey, TmpfsTable, VolumeTable
from agentbox.manifest.types import Size

BASE = "[meta]\nschema_version = 1\n"


def model(text: str) -> Model:
    manifest = parse((BASE + text).encode(), "x")
    assert manifest.findings == ()
    return manifest.usable


def test_one_built_in_delta_a_key() -> None:
    """The table and the schema name the same seven."""
    named = {
        path.split(".")[2] for path, _ in properties() if path.startswith("security.exceptions.")
    }
    assert set(BUILTIN) == named
    assert len(named) == 7


def test_an_empty_block_gives_the_built_in_delta() -> None:
    """With its reason."""
    assert (
        effective_delta(model("[security.exceptions.desktop]\n"), "desktop") == BUILTIN["desktop"]
    )


def test_built_in_false_leaves_what_is_written() -> None:
    """And nothing is inherited that the built-in delta would bring."""
    text = (
        '[security.exceptions.gaussian-splatting]\nbuiltin = false\nreason = "only a volume here"\n'
    )
    text += 'volumes = [{ source = "x", target = "/var/lib/x" }]\n'
    delta = effective_delta(model(text), "gaussian-splatting")
    assert delta == SecurityExceptionDelta(
        reason="only a volume here", volumes=(VolumeTable(source="x", target="/var/lib/x"),)
    )


def test_inherited_deltas_are_added() -> None:
    """Also those that a built-in delta inherits; the reason stays its own."""
    delta = effective_delta(
        model("[security.exceptions.gaussian-splatting]\n"), "gaussian-splatting"
    )
    assert delta.device_requests == BUILTIN["gpu-cuda"].device_requests
    assert delta.reason == BUILTIN["gaussian-splatting"].reason


def test_a_cycle_ends() -> None:
    """Rule E205 refuses it; nothing recurses for ever."""
    text = '[security.exceptions.desktop]\nreason = "one of a pair"\ninherits = ["playwright"]\n'
    text += '[security.exceptions.playwright]\nreason = "two of a pair"\ninherits = ["desktop"]\n'
    targets = [mount.target for mount in effective_delta(model(text), "desktop").tmpfs]
    assert targets == ["/dev/shm", "/run/user/1000", "/tmp/.X11-unix"]


def test_union_takes_the_larger_memory_file_system() -> None:
    """By target; other fields by value."""
    small, large = (
        SecurityExceptionDelta(tmpfs=(TmpfsTable(target="/x", size=Size(size)),))
        for size in ("1MiB", "2MiB")
    )
    assert union(small, large).tmpfs == union(large, small).tmpfs == large.tmpfs


def test_union_loses_nothing() -> None:
    """Of two memory file systems at one path the bits of both modes and permission to execute; of
    two volumes permission to write; two sources for one path both stay, to be rejected."""
    first = SecurityExceptionDelta(
        tmpfs=(TmpfsTable(target="/x", size=Size("2MiB"), mode="0700"),),
        volumes=(
            VolumeTable(source="a", target="/a", read_only=True),
            VolumeTable(source="b", target="/b"),
        ),
    )
    second = SecurityExceptionDelta(
        tmpfs=(TmpfsTable(target="/x", size=Size("1MiB"), mode="1077", exec=True),),
        volumes=(VolumeTable(source="a", target="/a"), VolumeTable(source="other", target="/b")),
    )
    both = union(first, second)
    assert both == union(second, first)
    assert both.tmpfs == (TmpfsTable(target="/x", size=Size("2MiB"), mode="1777", exec=True),)
    assert [(row.source, row.read_only) for row in both.volumes] == [
        ("a", False),
        ("b", False),
        ("other", False),
    ]


@pytest.mark.parametrize(
    ("key", "widens"),
    [
        ("desktop", False),
        ("playwright", False),
        ("gpu-rocm", True),
        ("gpu-cuda", True),
        ("code-server", False),
    ],
)
def test_what_widens(key: ExceptionKey, widens: bool) -> None:
    """Devices, groups and requests do; memory file systems and named volumes do not."""
    assert bool(widenings(BUILTIN[key])) == widens


def test_a_host_folder_widens() -> None:
    """A volume whose source is a path of the host."""
    assert widenings(
        SecurityExceptionDelta(volumes=(VolumeTable(source="/srv", target="/x"),))
    ) == ("host directory /srv",)


def test_active_needs_block_and_gate() -> None:
    """A block alone is not active, a gate alone neither."""
    gated = Feature(
        name="desktop",
        gate=Gate(key="meta.dev", values=(True,)),
        exception=SecurityExceptionNeed(key="desktop", need="advised"),
    )
    with_block = model("[security.exceptions.desktop]\n")
    assert open_gates({"desktop": gated}, ("desktop",)) == {"desktop"}
    assert active_keys(with_block, {"desktop": gated}, ("desktop",)) == ("desktop",)
    assert active_keys(with_block, {"desktop": gated}, ()) == ()
    assert active_keys(Model(), {"desktop": gated}, ("desktop",)) == ()
