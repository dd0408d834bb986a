"""compose: the complete baseline, whatever the manifest is; the effects of options and exceptions."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.plans import manifest_bytes, plan_of

from agentbox.plan.model import Device, Plan, SecurityExceptionPlan, TmpfsPlan, VolumePlan
from agentbox.plan.render.compose import compose, format_size
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.files import compose_files

IMAGE = "agentbox:0123456789ab@sha256:" + "a" * 64


def service(plan: Plan, **options: Any) -> dict[str, Any]:
    """The one service of the rendered text."""
    found: dict[str, Any] = yaml.safe_load(compose(plan, IMAGE, **options))["services"]["agentbox"]
    return found


def test_the_baseline_of_the_default_manifest() -> None:
    """User, root, capabilities, escalation, seccomp file, limits, namespaces: every line that hardens."""
    found = service(plan_of())
    assert found["user"] == "1000:1000"
    assert found["read_only"] is True
    assert found["cap_drop"] == ["ALL"]
    assert "cap_add" not in found
    assert found["privileged"] is False
    assert found["security_opt"] == ["no-new-privileges:true", "seccomp=./seccomp/agentbox.json"]
    assert found["ipc"] == "private"
    assert not {
        "pid",
        "uts",
        "userns_mode",
        "network_mode",
        "devices",
        "group_add",
        "runtime",
    } & set(found)
    assert (found["cpus"], found["mem_limit"], found["memswap_limit"]) == (2.0, "4096m", "4096m")
    assert (found["pids_limit"], found["ulimits"]["nofile"]["hard"], found["ulimits"]["core"]) == (
        2048,
        16384,
        0,
    )
    assert found["ports"] == ["127.0.0.1:9090:9090", "127.0.0.1:9091:9091"]
    assert found["restart"] == "on-failure:5"
    assert len(found["tmpfs"]) == 5
    assert all(row.endswith("uid=1000,gid=1000,noexec,nosuid,nodev") for row in found["tmpfs"])


def test_resources_and_addresses_follow_the_manifest() -> None:
    """recreate-class keys land in their lines; an IPv6 address is bracketed."""
    found = service(
        plan_of(
            'meta = { schema_version = 1, name = "worker" }\n'
            '[resources]\ncpus = 1.5\nmemory = "1536KiB"\ntmp_size = "1GiB"\nstop_seconds = 60\n'
            '[api]\nport = 8000\npublish_address = "::1"\n[observability]\nlog_level = "debug"\n'
        )
    )
    assert (found["container_name"], found["hostname"]) == ("worker", "worker")
    assert (found["cpus"], found["mem_limit"], found["stop_grace_period"]) == (1.5, "1536k", "60s")
    assert found["ports"][0] == "[::1]:8000:8000"
    assert found["tmpfs"][1].startswith("/tmp:mode=1777,size=1024M,")
    assert found["environment"]["AGENTBOX_LOG_LEVEL"] == "debug"
    assert found["healthcheck"]["test"][-1] == "http://127.0.0.1:8000/ready"


def test_boot_and_live_keys_leave_the_text_equal_but_for_digests() -> None:
    """Their change needs no new container (docs/manifest.md)."""

    def masked(text: str) -> str:
        plan = plan_of(text)
        return (
            compose(plan, IMAGE)
            .replace(plan.digest, "PLAN")
            .replace(plan.digests.manifest, "MANIFEST")
        )

    assert masked("[limits]\npids = 7\n[api]\nmax_body = '2MiB'\n") == masked("")
    assert masked("[resources]\npids = 99\n") != masked("")


def test_environment_carries_the_plan_and_no_secret() -> None:
    """Only plain data; secrets are files, one a name, mounted below /run/secrets."""
    plan = plan_of()
    found = service(plan, strict=True)
    assert set(found["environment"]) == {
        "AGENTBOX_IMAGE_REF",
        "AGENTBOX_LOG_LEVEL",
        "AGENTBOX_METRICS_PORT",
        "AGENTBOX_OTLP_ENDPOINT",
        "AGENTBOX_PLAN_DIGEST",
        "AGENTBOX_STRICT",
    }
    assert (
        found["environment"]["AGENTBOX_PLAN_DIGEST"],
        found["environment"]["AGENTBOX_STRICT"],
    ) == (plan.digest, "1")
    assert [row["source"] for row in found["secrets"]] == list(plan.secrets)
    top = yaml.safe_load(compose(plan))["secrets"]
    assert top["AGENTBOX_API_TOKEN"] == {"file": "./secrets/AGENTBOX_API_TOKEN"}


def test_a_dollar_in_a_value_is_not_for_compose() -> None:
    """Compose would substitute a variable of the operator's."""
    plan = plan_of('[observability]\notlp_endpoint = "http://h/$HOME"\n')
    assert service(plan)["environment"]["AGENTBOX_OTLP_ENDPOINT"] == "http://h/$$HOME"
    assert service(plan)["image"] == f"${{AGENTBOX_IMAGE_REF:-{IMAGE}}}"


def test_a_project_folder_takes_the_place_of_the_workspace() -> None:
    """The volume is removed from the file, and the security report lists what agents can change."""
    plan = plan_of()
    found = service(plan, project=Path("/home/me/pro$ject"))
    assert found["volumes"][-1] == {
        "type": "bind",
        "source": "/home/me/pro$$ject",
        "target": "/workspace",
    }
    assert set(yaml.safe_load(compose(plan, project=Path("/p")))["volumes"]) == {
        "backups",
        "branches",
        "state",
    }
    folder = compose_files(plan, manifest=manifest_bytes(), project=Path("/home/me"))
    assert b"`/home/me` of this host is mounted writable" in folder["security-report.md"]
    with pytest.raises(RenderError, match="cannot mount p: the path is relative"):
        compose(plan, project=Path("p"))


def test_test_hooks_need_a_plan_with_test_hooks() -> None:
    """A variable that is no hook, or a plan without them, is refused."""
    hook = {"AGENTBOX_TEST_SEAL_TIMEOUT": "3"}
    assert (
        service(plan_of(test_hooks=True), hooks=hook)["environment"]["AGENTBOX_TEST_SEAL_TIMEOUT"]
        == "3"
    )
    with pytest.raises(RenderError, match="cannot set AGENTBOX_TEST_SEAL_TIMEOUT"):
        compose(plan_of(), hooks=hook)
    with pytest.raises(RenderError, match="cannot set PATH"):
        compose(plan_of(test_hooks=True), hooks={"PATH": "/evil"})


WIDE = SecurityExceptionPlan(
    key="gpu",
    reason="models run on the GPU",
    tmpfs=(
        TmpfsPlan(target="/dev/shm", size=512 << 20, mode="1777"),
        TmpfsPlan(target="/tmp", size=1 << 30, mode="0700"),
    ),
    volumes=(VolumePlan(source="models", target="/var/lib/models", read_only=True),),
    devices=("/dev/kfd",),
    group_add=("video",),
    cap_add=("SYS_NICE",),
    device_requests=(Device(driver="nvidia", count=-1, capabilities=("gpu",)),),
    runtime="nvidia",
)


def test_an_exception_only_adds_lines() -> None:
    """Every scalar and list entry of the baseline is in the wider file; only /tmp grew."""
    plan = plan_of()
    narrow, wide = service(plan), service(replace(plan, exceptions=(WIDE,)))
    for key, value in narrow.items():
        if key in {"environment", "labels", "image", "tmpfs"}:
            continue
        if isinstance(value, list):
            assert all(item in wide[key] for item in value), key
        else:
            assert wide[key] == value, key
    assert [row.split(":")[0] for row in narrow["tmpfs"]] == [
        row.split(":")[0] for row in wide["tmpfs"]
    ][:5]
    assert wide["tmpfs"][1].startswith("/tmp:mode=1777,size=1024M,")
    assert wide["tmpfs"][5].startswith("/dev/shm:mode=1777,size=512M,")
    assert (wide["cap_add"], wide["cap_drop"]) == (["SYS_NICE"], ["ALL"])
    assert (wide["devices"], wide["group_add"], wide["runtime"]) == (
        ["/dev/kfd:/dev/kfd"],
        ["video"],
        "nvidia",
    )
    devices = wide["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]
    assert {
        "type": "volume",
        "source": "models",
        "target": "/var/lib/models",
        "read_only": True,
    } in wide["volumes"]


def test_the_folder_is_complete() -> None:
    """Compose finds everything it names beside the file, and `.env` overrides the image if only an
    id is known."""
    plan = plan_of()
    folder = compose_files(plan, IMAGE, manifest=manifest_bytes(), image_id="sha256:" + "b" * 64)
    assert sorted(folder) == [
        ".env",
        "agentbox.toml",
        "docker-compose.yml",
        "seccomp/agentbox.json",
        "security-report.json",
        "security-report.md",
    ]
    assert folder[".env"].decode().splitlines() == [
        "AGENTBOX_IMAGE_REF=sha256:" + "b" * 64,
        "COMPOSE_PROJECT_NAME=agentbox",
    ]
    assert json.loads(folder["seccomp/agentbox.json"])["defaultAction"] == "SCMP_ACT_ERRNO"
    assert folder["agentbox.toml"] == manifest_bytes()


def test_an_image_id_stands_in_no_generated_file_but_env() -> None:
    """It has a meaning for one engine only, so the compose file keeps the tag of the plan."""
    plan = plan_of()
    text = compose(plan, "sha256:" + "b" * 64)
    assert "b" * 64 not in text
    assert f"agentbox:{plan.digest[7:19]}" in text


@pytest.mark.parametrize(
    ("count", "text"), [(4 << 30, "4096m"), (64 << 20, "64m"), (1536 << 10, "1536k")]
)
def test_sizes_are_exact(count: int, text: str) -> None:
    """No rounding between the manifest and the engine."""
    assert format_size(count) == text


def test_a_rehearsal_has_neither_ports_nor_a_network_nor_folders_of_the_host() -> None:
    """Another container with volumes of its own; everything that hardens stays."""
    plan = plan_of('[backup]\nfolder = "/srv/backups"\n')
    usual, offline = service(plan), service(plan, box="other_rehearsal", offline=True)
    assert (offline["container_name"], offline["network_mode"]) == ("other_rehearsal", "none")
    assert offline["restart"] == "no"
    assert not {"ports", "networks"} & set(offline)
    assert {row["source"] for row in usual["volumes"]} - {
        row["source"] for row in offline["volumes"]
    } == {"/srv/backups"}
    changed = {"container_name", "network_mode", "networks", "ports", "restart", "volumes"}
    kept = set(usual) - changed
    assert {name: usual[name] for name in kept} == {name: offline[name] for name in kept}
    document = yaml.safe_load(compose(plan, IMAGE, box="other_rehearsal", offline=True))
    names = {row["name"] for row in document["volumes"].values()}
    assert all(name.startswith("other_rehearsal-") for name in names)
    assert "networks" not in document
