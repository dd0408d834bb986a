"""npm packages, resolved and packed by the real client from a registry on loopback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from npm_registry import Registry

from agentbox.core.progress import NullProgress
from agentbox.host.packages.errors import FetchError, NoNetworkError, NotServedError, ResolveError
from agentbox.host.packages.npm.npm_pack import NpmPacker
from agentbox.host.packages.npm.npm_resolver import resolve
from agentbox.manifest.features.npm_spec import NpmSpec, npm_spec, npm_specs
from agentbox.plan.lockfile.inputs import LockInputs, RequestedPackages
from agentbox.plan.lockfile.model import NpmEntry

BOTH = ("amd64", "arm64")


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Two versions of a library; a command with a program for each machine and one for another
    system.
    """
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "cache"))
    monkeypatch.setenv("npm_config_userconfig", str(tmp_path / "npmrc"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    with Registry() as running:
        monkeypatch.setenv("npm_config_registry", running.url)
        for version in ("1.0.0", "1.1.0"):
            running.publish("library", version)
        for cpu in ("x64", "arm64"):
            running.publish(f"@maker/tool-linux-{cpu}", "2.0.0", os=["linux"], cpu=[cpu])
        running.publish("@maker/tool-darwin", "2.0.0", os=["darwin"])
        parts = dict.fromkeys(
            ("@maker/tool-linux-x64", "@maker/tool-linux-arm64", "@maker/tool-darwin"), "2.0.0"
        )
        running.publish(
            "@maker/tool", "2.0.0", optionalDependencies=parts, dependencies={"library": "^1.0.0"}
        )
        running.publish("builder", "1.0.0", scripts={"install": "false"})
        yield running


def rows(
    *listed: str,
    archs: tuple[str, ...] = ("amd64",),
    pins: Mapping[str, str] | None = None,
    ignored: str = "",
    optional_ignored: str = "",
) -> dict[str, NpmEntry]:
    """The rows of a feature `tool` with this list, by file name."""
    wanted = {
        "tool": RequestedPackages(
            npm=listed, npm_scripts_ignored=ignored, npm_optional_ignored=optional_ignored
        )
    }
    inputs = LockInputs(
        source="debian", suite="trixie", python="3.13", systems=("x86_64-linux",), features=wanted
    )
    return {row.file: row for row in resolve(inputs, archs, pins or {}, NullProgress())}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("tool", NpmSpec("tool", "tool", "latest")),
        ("@maker/tool@^2", NpmSpec("@maker/tool", "@maker/tool", "^2")),
        ("alias@npm:@maker/tool@2.0.0", NpmSpec("alias", "@maker/tool", "2.0.0")),
    ],
)
def test_an_entry_of_the_list(text: str, spec: NpmSpec) -> None:
    """Name, range, and npm's form of an alias; `{cpu}` is npm's name of a machine."""
    assert npm_spec(text) == spec
    assert [row.directory for row in npm_specs(["t-{cpu}"], "arm64")] == ["t-arm64"]


def test_each_machine_gets_its_own_program(registry: Registry) -> None:
    """Rows that fit Linux on the requested machines, with every install path; none of other
    systems.
    """
    found = rows("@maker/tool", archs=BOTH)
    assert {name: row.arch for name, row in found.items()} == {
        "library-1.1.0.tgz": BOTH,
        "maker-tool-2.0.0.tgz": BOTH,
        "maker-tool-linux-arm64-2.0.0.tgz": ("arm64",),
        "maker-tool-linux-x64-2.0.0.tgz": ("amd64",),
    }
    assert found["library-1.1.0.tgz"].paths == ("tool/node_modules/library",)
    assert found["library-1.1.0.tgz"].size == len(registry.tarballs["library/-/1.1.0.tgz"])


def test_optional_packages_may_be_left_out(registry: Registry) -> None:
    """What others require stays, also what peers do; a listed package is never optional."""
    registry.publish("peer", "1.0.0")
    registry.publish("unused", "1.0.0")
    registry.publish(
        "wrapper",
        "1.0.0",
        dependencies={"@maker/tool": "^2"},
        peerDependencies={"peer": "1.0.0", "unused": "1.0.0"},
        peerDependenciesMeta={"unused": {"optional": True}},
        optionalDependencies={"unused": "1.0.0"},
    )
    found = rows("wrapper", optional_ignored="the programs are in the image already")
    names = {"wrapper-1.0.0.tgz", "maker-tool-2.0.0.tgz", "library-1.1.0.tgz", "peer-1.0.0.tgz"}
    assert found.keys() == names
    assert rows("wrapper").keys() > names


def test_a_program_of_another_machine_may_be_named(registry: Registry) -> None:
    """It is required, not optional: a version that the registry does not serve is an error."""
    assert rows("@maker/tool-linux-{cpu}", archs=BOTH).keys() == {
        "maker-tool-linux-arm64-2.0.0.tgz",
        "maker-tool-linux-x64-2.0.0.tgz",
    }
    del registry.documents["@maker/tool-linux-arm64"]
    with pytest.raises(ResolveError, match="does not serve @maker/tool-linux-arm64"):
        rows("@maker/tool-linux-{cpu}", archs=BOTH)
    assert len(rows("@maker/tool-linux-{cpu}")) == 1


def test_versions_are_kept_while_they_are_served(registry: Registry) -> None:
    """Including versions of indirect dependencies; when one no longer exists, the list is resolved
    again."""
    pins = {"tool/node_modules/@maker/tool": "2.0.0", "tool/node_modules/library": "1.0.0"}
    assert "library-1.0.0.tgz" in rows("@maker/tool", pins=pins)
    registry.withdraw("library", "1.0.0")
    assert "library-1.1.0.tgz" in rows("@maker/tool", pins=pins)


def test_a_package_without_what_it_requires_is_refused(registry: Registry) -> None:
    """npm would silently omit a dependency of an optional package, or the package itself."""
    del registry.documents["library"]
    missing = r"(library \^1\.0\.0, which @maker/tool needs|@maker/tool latest, or a package that it requires)"
    with pytest.raises(ResolveError, match=f"does not serve {missing}"):
        rows("@maker/tool")


def test_an_install_script_needs_a_reason(registry: Registry) -> None:
    """Install scripts are never run."""
    with pytest.raises(ResolveError, match="builder: it has an install script"):
        rows("builder")
    assert rows("builder", ignored="it only builds what nobody calls").keys() == {
        "builder-1.0.0.tgz"
    }


def test_other_bytes_than_the_index_names_are_refused(registry: Registry) -> None:
    """Whatever changed them."""
    registry.tarballs["library/-/1.1.0.tgz"] = registry.tarballs["library/-/1.0.0.tgz"]
    with pytest.raises(FetchError, match="library"):
        rows("library")


def test_a_withdrawn_version_is_named(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says to lock again; an unreachable registry is another error."""
    with pytest.raises(NotServedError) as raised:
        NpmPacker([("library", "9.9.9")]).file(("library", "9.9.9"))
    assert raised.value.names == ("library",)
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1/")
    with pytest.raises(NoNetworkError, match="cannot download library"):
        NpmPacker([("library", "1.0.0")]).file(("library", "1.0.0"))
