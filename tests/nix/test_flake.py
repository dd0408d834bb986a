"""The flake evaluates, checks and builds without network, and never fetches nixpkgs."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from support.shared_environment import share_environment

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.paths import CHECKOUT, HostPaths
from agentbox.core.progress import NullProgress
from agentbox.host.image.archive import BuildResult
from agentbox.host.image.flake_reference import copy_sources, flake_reference
from agentbox.host.image.nix_build import build
from agentbox.host.packages.lock_inputs import host_system
from agentbox.host.packages.store.fetch import fetch_all
from agentbox.host.packages.store.nix_store import nix_environment
from agentbox.plan.lockfile.reader import parse_lock

LOCK = CHECKOUT / "agentbox.lock"
SYSTEM = host_system()


def nix(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Nix in a network namespace of its own: nothing but loopback, and that is down."""
    return subprocess.run(
        ["unshare", "--net", "nix", *arguments],
        env=nix_environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def flake() -> Iterator[str]:
    """The flake of this checkout, with every locked file in the store."""
    fetch_all(parse_lock(LOCK), cache=HostPaths.for_this_user().cache, progress=NullProgress())
    with flake_reference(CHECKOUT, CHECKOUT / "agentbox.toml", LOCK) as reference:
        yield reference


@pytest.fixture(scope="module")
def built(flake: str, tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    """The image of this checkout."""
    return build(CHECKOUT, out_link=tmp_path_factory.mktemp("built") / "image")


def test_the_lock_of_the_flake_is_kept(flake: str) -> None:
    """`nix flake show` works without network and leaves flake.lock unchanged, with the pinned
    nixpkgs in it."""
    before = (CHECKOUT / "flake.lock").read_bytes()
    shown = nix("flake", "show", "--json", flake)
    assert shown.returncode == 0, shown.stderr
    assert (CHECKOUT / "flake.lock").read_bytes() == before
    pinned = json.loads(before)["nodes"]["nixpkgs"]["locked"]
    assert pinned["rev"] == "b18a4b905f8d028dc4476412e6d6891728695379"
    assert "nixpkgs" not in shown.stderr
    outputs = {
        kind: set(found[SYSTEM])
        for kind, found in json.loads(shown.stdout).items()
        if SYSTEM in found
    }
    assert {"image", "default", "compose", "supervisord", "sbom", "rootfs"} <= outputs["packages"]
    assert outputs["apps"] == {"default", "up", "verify"}
    assert outputs["devShells"] == {"default"}
    assert json.loads(shown.stdout)["formatter"][SYSTEM]["name"] == "agentbox-fmt"


def test_every_check_of_the_image_passes(flake: str) -> None:
    """`nix flake check` builds the image and its checks without network."""
    done = nix("flake", "check", flake)
    assert done.returncode == 0, done.stderr
    listed = nix("eval", "--json", f"{flake}#checks.{SYSTEM}", "--apply", "builtins.attrNames")
    assert set(json.loads(listed.stdout)) == {
        "budget",
        "format",
        "layers",
        "ldcache",
        "manifest",
        "render",
        "sbom",
    }


def test_apps_run_the_command_line(flake: str, tmp_path: Path) -> None:
    """With the image's own Python, without network: `default` is the command, `verify` and `up`
    name a command, of which one has an option and the other runs; a box that is not running is
    reported by exit code 8 or 2."""
    state = {**nix_environment(), "AGENTBOX_STATE_DIR": str(tmp_path)}

    def ran(app: str, *words: str) -> subprocess.CompletedProcess[str]:
        argv = ["nix", "run", f"{flake}#{app}", "--", *words]
        return subprocess.run(
            argv, env=state, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    shown = ran("default", "--version")
    assert shown.stdout.startswith("agentbox, version "), shown.stderr
    assert ran("default", "--json", "status").returncode == 8
    assert "Usage: agentbox up [OPTIONS]" in ran("up", "--help").stdout
    none = ran("verify")
    assert (none.returncode, "none was built yet" in none.stderr) == (2, True), none.stderr


def test_the_shell_has_the_command(flake: str) -> None:
    """`nix develop` enters it without nixpkgs."""
    done = nix("develop", flake, "--command", "agentbox", "--version")
    assert done.stdout.startswith("agentbox, version "), done.stderr


def test_the_formatter_mends_the_checkout(flake: str, tmp_path: Path) -> None:
    """`nix fmt` puts a file that lost its form back, and nothing else."""
    copy = tmp_path / "copy"
    copy_sources(CHECKOUT, copy)
    share_environment(copy)
    module = copy / "agentbox/core/clock.py"
    good = module.read_bytes()
    module.write_bytes(good.replace(b"\n", b"  \r\n") + b"\n\n")
    done = subprocess.run(
        ["nix", "fmt"], cwd=copy, env=nix_environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "agentbox/core/clock.py\n1 file changed\n"), (
        done.stderr
    )
    assert module.read_bytes() == good


def test_what_needs_nixpkgs_says_so(flake: str) -> None:
    """`image-nixpkgs` is named, and refused with a message."""
    refused = nix("build", f"{flake}#image-nixpkgs", "--no-link")
    assert refused.returncode != 0
    assert "the package source nixpkgs comes later" in refused.stderr


def test_an_unchanged_build_builds_nothing(built: BuildResult, tmp_path: Path) -> None:
    """The second build of the same inputs produces the same archive and no derivation."""
    again = build(CHECKOUT, out_link=tmp_path / "image")
    assert again.built == ()
    assert (again.image_id, again.path) == (built.image_id, built.path)
    assert (tmp_path / "image").is_symlink()


def test_a_change_of_the_package_rebuilds_one_layer(built: BuildResult, tmp_path: Path) -> None:
    """One line in a module: tree and layer `app` and the archive are built, and nothing else."""
    copy = tmp_path / "copy"
    copy_sources(CHECKOUT, copy)
    module = copy / "agentbox/core/clock.py"
    module.write_text(f"{module.read_text()}# {uuid4()}\n")  # not in the store by an earlier run
    after = build(copy, out_link=tmp_path / "after")
    assert set(after.built) == {"tree-app", "layer-app", after.path.name[33:]}
    changed = [
        one.name
        for one, two in zip(built.layers, after.layers, strict=True)
        if one.digest != two.digest
    ]
    assert changed == ["app"]


def test_a_file_that_was_not_fetched_is_named(tmp_path: Path) -> None:
    """A lock row whose file is not in the store: exit 4, the file's name, the command to run."""
    text = LOCK.read_text()
    row = next(line for line in text.splitlines() if 'name = "uvicorn"' in line)
    sha256 = row.split('sha256 = "')[1][:64]
    other = tmp_path / "agentbox.lock"
    other.write_text(text.replace(sha256, "0" * 64))
    manifest = tmp_path / "agentbox.toml"
    manifest.write_bytes((CHECKOUT / "agentbox.toml").read_bytes())
    with pytest.raises(AgentboxError, match=r"uvicorn-.*\.whl is not in the store") as refused:
        build(CHECKOUT, manifest=manifest, out_link=tmp_path / "image")
    assert refused.value.exit_code == ExitCode.FETCH


def test_a_manifest_with_errors_does_not_become_an_image(tmp_path: Path) -> None:
    """The renderer inside the derivation runs the rules: exit 6 with the finding."""
    manifest = tmp_path / "agentbox.toml"
    manifest.write_text('[meta]\nschema_version = 1\nname = "x"\n[api]\nport = 80\n')
    with pytest.raises(AgentboxError, match="plan failed") as refused:
        build(CHECKOUT, manifest=manifest, lock=LOCK, out_link=tmp_path / "image")
    assert refused.value.exit_code == ExitCode.ENGINE
    assert "api.port" in refused.value.message


def test_two_builds_at_once_agree(built: BuildResult, tmp_path: Path) -> None:
    """Neither disturbs the other, whichever of them is built already."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda n: build(CHECKOUT, out_link=tmp_path / n), ("one", "two")))
    assert made[0].image_id == made[1].image_id == built.image_id
