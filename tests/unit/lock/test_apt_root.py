"""Disk space for a private apt root."""

from pathlib import Path

import pytest

from agentbox.host.packages.apt import apt_root
from agentbox.host.packages.apt.apt_root import AptRoot
from agentbox.host.packages.apt.apt_sources import DebianMirror, Source
from agentbox.host.packages.errors import DiskFullError


def test_lists_are_asked_for_only_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk apt never ends: exit 3 instead, with the directory, the free and the required
    space.
    """
    monkeypatch.setattr(apt_root, "_MIN_FREE_BYTES", 1 << 60)
    root = AptRoot(
        tmp_path,
        DebianMirror(Source(("file:///nowhere",), ("trixie",), ("main",)), None),
        "trixie",
        "amd64",
    )
    with (
        root.locked(),
        pytest.raises(
            DiskFullError, match=f"MiB are free below {tmp_path}, {1 << 40} MiB are required"
        ) as full,
    ):
        root.update()
    assert full.value.exit_code == 3
