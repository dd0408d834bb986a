"""Rebuilds do not accumulate images: those that left the record of builds are removed, and nothing
else."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli_box import CliBox

from agentbox.host.engines.docker.old_images import PLAN_LABEL, remove_old_images
from agentbox.host.engines.state import MAX_BUILDS, BoxState, BuildStamp

REPOSITORY = "agentbox-old-images"
PLAN = "sha256:" + "a" * 64
Make = Callable[..., BuildStamp]


def docker(*words: str, given: bytes = b"") -> str:
    return (
        subprocess.run(["docker", *words], input=given, capture_output=True, check=True)
        .stdout.decode()
        .strip()
    )


def there(stamp: BuildStamp) -> bool:
    return (
        subprocess.run(
            ["docker", "image", "inspect", stamp.image_id], capture_output=True, check=False
        ).returncode
        == 0
    )


@pytest.fixture
def make() -> Iterator[Make]:
    """Creates tiny images that no one else has; `label` is the plan digest that they carry, "" for
    none."""
    made: list[str] = []

    def image(label: str = PLAN, tag: str = "") -> BuildStamp:
        number = len(made)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            tar.addfile(tarfile.TarInfo(f"{REPOSITORY}-{number}"))
        change = ["--change", f"LABEL {PLAN_LABEL}={label}"] if label else []
        command = ["--change", 'CMD ["/none"]']
        made.append(
            docker(
                "import",
                *change,
                *command,
                "-",
                f"{REPOSITORY}:{tag or number}",
                given=archive.getvalue(),
            )
        )
        return BuildStamp(f"k{number}", made[-1], "sha256:m", f"{REPOSITORY}:{number}", PLAN)

    yield image
    for container in docker("ps", "--all", "--quiet", "--filter", f"label={REPOSITORY}").split():
        docker("rm", container)
    for one in made:
        subprocess.run(["docker", "image", "rm", "--force", one], capture_output=True, check=False)


@pytest.fixture
def state(tmp_path: Path) -> BoxState:
    made = BoxState(tmp_path / "box")
    made.make()
    return made


def test_what_fell_out_goes_and_the_last_five_stay(make: Make, state: BoxState) -> None:
    """Named images and images whose name moved to a newer build alike; a second call removes
    nothing more."""
    stamps = [make(tag="same") for _ in range(3)] + [make() for _ in range(MAX_BUILDS)]
    for stamp in stamps:
        state.add_build(stamp)
    assert remove_old_images(state) == [stamp.image_id for stamp in reversed(stamps[:3])]
    assert [there(stamp) for stamp in stamps] == [False] * 3 + [True] * MAX_BUILDS
    assert remove_old_images(state) == []


def test_what_is_not_ours_or_is_used_stays(make: Make, state: BoxState) -> None:
    """An image without our label, of another plan, of a stopped container, with a second name, in
    the record of another box of this user, and one that no record ever had."""
    foreign, other_plan, used, shared, named, unknown = (
        make(label=""), make(label="sha256:b"), make(), make(), make(), make(),
    )  # fmt: skip
    docker("create", "--label", REPOSITORY, used.image_id)
    docker("tag", shared.image_id, f"{REPOSITORY}:second")
    neighbour = BoxState(state.directory.with_name("neighbour"))
    neighbour.make()
    neighbour.add_build(named)
    old = [foreign, other_plan, used, shared, named]
    for stamp in [*old, *(make() for _ in range(MAX_BUILDS))]:
        state.add_build(stamp)
    assert remove_old_images(state) == []
    assert all(there(stamp) for stamp in (*old, unknown))
    docker("rm", *docker("ps", "--all", "--quiet", "--filter", f"label={REPOSITORY}").split())
    assert remove_old_images(state) == [used.image_id]


def test_up_removes_them_once_the_box_is_ready(make: Make, cli_box: CliBox) -> None:
    """And reports it; the running box keeps its own image."""
    state = BoxState(cli_box.state)
    state.make()
    stamps = [make() for _ in range(MAX_BUILDS + 1)]
    for stamp in stamps:
        state.add_build(stamp)
    ran = cli_box.up()
    assert "removed 2 images of earlier builds" in ran.err
    assert [there(stamp) for stamp in stamps] == [False] * 2 + [True] * (MAX_BUILDS - 1)
    assert cli_box.container()["State"]["Running"] is True
