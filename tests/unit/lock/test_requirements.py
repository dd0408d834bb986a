"""One requirements file for all supported Pythons."""

from pathlib import Path

import pytest
from packaging.markers import Marker

from agentbox.core.paths import CHECKOUT
from agentbox.host.packages.python.host_requirements import requirement_files
from agentbox.host.packages.python.requirements import ARCHS, PYTHONS, RequirementsFile, marker_for
from agentbox.host.packages.python.target import Target

EVERYWHERE = [(python, arch) for python in PYTHONS for arch in ARCHS]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (EVERYWHERE, ""),
        (
            [(python, arch) for python, arch in EVERYWHERE if python != "3.11"],
            'python_version >= "3.12"',
        ),
        ([("3.11", "amd64"), ("3.11", "arm64")], 'python_version < "3.12"'),
        ([("3.12", "amd64"), ("3.12", "arm64")], 'python_version == "3.12"'),
        ([(python, "arm64") for python in PYTHONS], 'platform_machine == "aarch64"'),
        ([("3.14", "amd64")], '(python_version >= "3.14") and platform_machine == "x86_64"'),
        (
            [("3.11", "amd64"), ("3.11", "arm64"), ("3.13", "arm64")],
            'python_version < "3.12" or (python_version == "3.13") and platform_machine == "aarch64"',
        ),
    ],
)
def test_markers_hold_exactly_there(where: list[tuple[str, str]], text: str) -> None:
    """The marker is short, and true in exactly the named environments."""
    assert marker_for(where) == text
    if text:
        true = [
            (p, a)
            for p, a in EVERYWHERE
            if Marker(text).evaluate(dict(Target(p, a, 34).environment()))
        ]
        assert true == where


def test_the_shipped_files_are_fresh() -> None:
    """requirements.host, .mcp and .test match pyproject.toml; `agentbox lock` updates
    them.
    """
    for file in requirement_files(CHECKOUT):
        assert not file.is_stale, file.path.name
        pinned = [line for line in file.path.read_text().splitlines() if "==" in line]
        assert len(pinned) >= len(file.requirements)
        assert all(line.endswith("\\") for line in pinned)


def test_stale_files(tmp_path: Path) -> None:
    """A missing file, one without a digest and one for other requirements are stale."""
    path = tmp_path / "requirements.host"
    file = RequirementsFile(path, ("click",), "purpose", {})
    assert file.is_stale
    path.write_text("click==8 \\\n    --hash=sha256:00\n")
    assert file.is_stale
    path.write_text(f"# inputs {file.inputs}\nclick==8 \\\n")
    assert not file.is_stale
    assert RequirementsFile(path, ("click", "rich"), "purpose", {}).is_stale
    assert RequirementsFile(path, ("click",), "purpose", {"click": ("colorama",)}).is_stale


def test_pins_are_versions_that_stand_once(tmp_path: Path) -> None:
    """A package with one version everywhere is pinned; one with a version per Python is not."""
    path = tmp_path / "requirements.host"
    path.write_text(
        'a==1 \\\nb==1 ; python_version < "3.12" \\\nb==2 ; python_version >= "3.12" \\\n'
    )
    assert RequirementsFile(path, (), "", {}).pins() == {"a": "1"}
