"""RC-020: one key of each apply class changed in the mounted manifest: live and boot are applied,
recreate is reported with `agentbox up`, rebuild ends the boot. Changed under a running box, each is
reported within a minute. Columns D and H."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from harness.box import Box
from harness.container import DockerBox
from harness.outcomes import API_PORT, MANIFEST, METRICS_PORT, Options
from harness.process import ProcessBox
from harness.waiting import wait_for

from agentbox.core.files.atomic_text import write_in_place
from agentbox.manifest.keys import apply_classes


def changed(line: str, manifest: str = MANIFEST) -> str:
    return manifest.replace("adapters = {", f"{line}\nadapters = {{")


LIVE = ("limits.run_wall_seconds", changed("limits = { run_wall_seconds = 61 }"))
BOOT = (
    "adapters.beads.required",
    MANIFEST.replace("adapters = {", "adapters = { beads = { required = true },"),
)
RECREATE = ("resources.pids", changed("resources = { pids = 2000 }"))
REBUILD = ("image.extra_packages", changed('image = { extra_packages = ["jq"] }'))
CHANGES = {"live": LIVE, "boot": BOOT, "recreate": RECREATE, "rebuild": REBUILD}
LEVELS = {"live": "info", "boot": "info", "recreate": "warn", "rebuild": "error"}
MINUTE = 60
FASTER = 20  # the hook by which a test image checks so much more often
HOOKS = {"AGENTBOX_TEST_CLOCK_SCALE": str(FASTER)}
SECONDS = MINUTE / FASTER + 3


def drift_of(box: Box, source: str = "manifest") -> list[tuple[str, str, list[str]]]:
    """Level, class and keys of each `ManifestDrift`."""
    told = [
        event
        for event in box.events()
        if event["event"] == "ManifestDrift" and event["source"] == source
    ]
    return [(event["level"], event["class"], event["keys"]) for event in told]


def mount(box: Box, text: str) -> None:
    """Changes what the box has mounted, as the command line does."""
    write_in_place(box.mounted_manifest(), text.encode())


def test_rc_020_classes_are_as_named() -> None:
    """The four keys that the tests change are of the four classes."""
    found = [apply_classes()[key] for key, _ in (LIVE, BOOT, RECREATE, REBUILD)]
    assert found == ["live", "boot", "recreate", "rebuild"]


class MinuteBox(ProcessBox):
    """A box beside the contract's: another name, and other ports."""

    name = "agentbox-rc-minute"
    port = API_PORT + 10
    manifest = (
        MANIFEST.replace("agentbox-rc", name)
        .replace(str(API_PORT), str(port))
        .replace(str(METRICS_PORT), str(METRICS_PORT + 10))
    )

    def get(self, path: str, **options: Any) -> Any:
        return super().get(path, **{"port": self.port, **options})


def minutes(box: MinuteBox, cut: Event) -> list[float]:
    """Seconds until a change is reported, and until it is withdrawn again, however long that takes;
    `cut` ends it."""
    try:
        box.start()
        box.wait_ready()
        text, taken = box.mounted_manifest().read_text(), []
        for mounted, wanted in (
            (changed("resources = { pids = 2000 }", text), f"recreate {RECREATE[0]}"),
            (text, ""),
        ):
            mount(box, mounted)
            began = time.monotonic()
            while told(box) != wanted and not cut.wait(0.2):
                pass
            taken.append(time.monotonic() - began)
        return taken
    finally:
        box.remove()


@pytest.fixture(scope="session")
def minutes_of_a_box(
    alone: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Future[list[float]]]:
    """Of a box without hooks that runs beside other tests of the contract."""
    box, cut = (
        MinuteBox(tmp_path_factory.mktemp("minute"), Options(manifest=MinuteBox.manifest)),
        Event(),
    )
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(minutes, box, cut)
        cut.set()


def test_rc_020_same(running: Box, minutes_of_a_box: Future[list[float]]) -> None:
    """The manifest that the image was built from: no drift is reported, and the baked plan is in
    force."""
    assert drift_of(running) == drift_of(running, "compose") == []
    assert running.wait_ready()["plan_digest"] == running.plan.digest


@pytest.mark.parametrize(
    ("row", "name"),
    [
        pytest.param(
            LIVE, "live", id="live", marks=pytest.mark.sampled(4, family="variants of a box")
        ),
        pytest.param(BOOT, "boot", id="boot"),
    ],
)
def test_rc_020_accepted(make_box: Callable[..., Box], row: tuple[str, str], name: str) -> None:
    """Reported as information, applied, sealed under the digest of the new plan."""
    key, text = row
    box = make_box(mounted=text)
    box.start()
    ready = box.wait_ready()
    assert drift_of(box) == [("info", name, [key])]
    assert ready["plan_digest"] == box.sentinel()["digests"]["plan"] != box.plan.digest
    assert box.get("/health").json["adapters"]["beads"]["required"] is (name == "boot")


def test_rc_020_live_without_restart(make_box: Callable[..., Box]) -> None:
    """`/v1/config/apply` applies a live key in the running box; one that needs more is refused, and
    changes nothing."""
    box = make_box()
    box.start()
    box.wait_ready()
    key, text = LIVE
    mount(box, text)
    answer = box.call("POST", "/v1/config/apply")
    assert (answer.status, answer.json["live"]) == (200, [key]), answer.body
    mount(box, RECREATE[1])
    refused = box.call("POST", "/v1/config/apply")
    assert refused.status == 409
    assert RECREATE[0] in refused.body.decode()
    assert box.wait_ready()["plan_digest"] == box.plan.digest


def told(box: Box) -> str:
    """What `/health` reports about the mounted manifest."""
    rows = [
        row for row in box.get("/health").json["posture"]["drift"] if row.startswith("manifest: ")
    ]
    return rows[0].removeprefix("manifest: ").rpartition(" (expected")[0] if rows else ""


def in_journal(box: Box) -> list[dict[str, Any]]:
    """The journal's events about a manifest."""
    return [row["data"] for row in box.journal() if row["type"] == "boot.manifest_drift"]


def test_rc_020_told_while_running(make_box: Callable[..., Box]) -> None:
    """Each class by name, in `/health` and in the journal, while the file differs; an unusable file
    has the reason; nothing is applied, and nothing is reported any more once the file is restored.
    """
    box = make_box(hooks=HOOKS)
    box.start()
    before = box.wait_ready()["plan_digest"]
    for name, (key, text) in CHANGES.items():
        mount(box, text)
        wanted = f"{name} {key}"
        wait_for(
            lambda wanted=wanted: told(box) == wanted, SECONDS, lambda: f"drift told; {told(box)}"
        )
    mount(box, "[meta\n")
    wait_for(
        lambda: told(box).startswith("invalid: E000"), SECONDS, lambda: f"invalid; {told(box)}"
    )
    mount(box, box.options.manifest)
    wait_for(lambda: told(box) == "", SECONDS, lambda: f"nothing told; {told(box)}")
    changes = [(LEVELS[name], name, [key]) for name, (key, _) in CHANGES.items()]
    wait_for(
        lambda: len(drift_of(box)) == len(changes) + 2, SECONDS, lambda: f"log; {drift_of(box)}"
    )
    assert drift_of(box) == [*changes, ("error", "invalid", []), ("info", "", [])]
    assert box.wait_ready()["plan_digest"] == before
    wait_for(
        lambda: len(in_journal(box)) == len(changes) + 2,
        SECONDS,
        lambda: f"journal; {in_journal(box)}",
    )


def test_rc_020_told_within_a_minute(minutes_of_a_box: Future[list[float]]) -> None:
    """By the clock, in an image without hooks; withdrawn within another."""
    assert max(minutes_of_a_box.result(3 * MINUTE)) <= MINUTE + 1


def test_rc_020_recreate_is_told(make_box: Callable[..., Box]) -> None:
    """A warning that names the keys; the box starts."""
    key, text = RECREATE
    box = make_box(mounted=text)
    box.start()
    box.wait_ready()
    assert drift_of(box) == [("warn", "recreate", [key])]
    stale = [
        row for row in box.get("/health").json["posture"]["drift"] if row.startswith("container: ")
    ]
    assert len(stale) == 1
    assert f"{key} need a new one" in stale[0]


@pytest.mark.sampled(4, family="variants of a box")
def test_rc_020_strict_refuses_recreate(make_box: Callable[..., Box]) -> None:
    """In strict mode the box ends with exit 1 and names `agentbox up`."""
    key, text = RECREATE
    strict = make_box(mounted=text, strict=True)
    strict.start()
    assert strict.wait_exit(15) == 1
    failed = strict.event("BootstrapFailed")
    assert (key in failed["reason"], "agentbox up" in failed["fix"]) == (True, True), failed
    assert not strict.sealed()


@pytest.mark.sampled(4, family="variants of a box")
def test_rc_020_recreate_served_by_compose(docker_box: Callable[..., DockerBox]) -> None:
    """Compose rendered from that manifest over the same image: one image serves many manifests,
    nothing is reported, and strict mode agrees."""
    box = docker_box(manifest=RECREATE[1], strict=True)
    box.start()
    assert box.wait_ready()["plan_digest"] == box.plan.digest
    assert drift_of(box) == drift_of(box, "compose") == []
    assert box.inspect()["HostConfig"]["PidsLimit"] == 2000


def test_rc_020_rebuild_is_fatal(make_box: Callable[..., Box]) -> None:
    """`ManifestDrift` as an error, `BootstrapFailed` with the keys and `agentbox up`, exit 1, nothing sealed."""
    key, text = REBUILD
    box = make_box(mounted=text)
    box.start()
    assert box.wait_exit(15) == 1
    assert drift_of(box) == [("error", "rebuild", [key])]
    failed: dict[str, Any] = box.event("BootstrapFailed")
    assert (key in failed["reason"], "agentbox up" in failed["fix"]) == (True, True), failed
    assert not box.sealed()
