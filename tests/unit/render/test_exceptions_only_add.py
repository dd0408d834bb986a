"""From a manifest to the compose file: whatever the exceptions are, no line of the baseline is
missing or weaker."""

import json
from functools import cache
from typing import Any, get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plans import SYSTEM, lock_of

from agentbox.manifest.features.loader import load_features
from agentbox.manifest.features.model import Feature, Gate, SecurityExceptionNeed
from agentbox.manifest.load import parse
from agentbox.manifest.tables.security import ExceptionKey
from agentbox.plan.build import build_plan
from agentbox.plan.errors import PlanError
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan
from agentbox.plan.render.compose import compose

KEYS: tuple[ExceptionKey, ...] = get_args(get_args(ExceptionKey)[0])  # of Annotated, of Literal
_BASE = '[meta]\nschema_version = 1\ndev = true\n[adapters]\npods.use = "off"\nmemory.use = "off"\n'
_KEPT = (
    "user", "cap_drop", "read_only", "privileged", "security_opt", "ipc", "pids_limit", "mem_limit", "memswap_limit", "cpus",
    "ulimits", "ports", "networks", "init", "restart", "healthcheck", "logging", "image", "stop_signal", "shm_size",
)  # fmt: skip

_TARGETS = st.sampled_from(
    ["/tmp", "/run", "/dev/shm", "/a", "/a/b", "/workspace", "/var/lib/agentbox/x"]
)
_MODES = st.sampled_from(["0700", "1777", "750"])
_TMPFS = st.fixed_dictionaries(
    {"target": _TARGETS, "size": st.sampled_from(["1MiB", "1GiB"])},
    optional={"mode": _MODES, "exec": st.booleans()},
)
_VOLUMES = st.fixed_dictionaries(
    {"source": st.sampled_from(["x", "y", "/srv/data"]), "target": _TARGETS},
    optional={"read_only": st.booleans()},
)
_REQUESTS = st.just({"driver": "nvidia", "capabilities": ["gpu"]})
_WRITTEN = st.fixed_dictionaries(
    {"reason": st.just("a reason of some length")},
    optional={
        "builtin": st.booleans(),
        "tmpfs": st.lists(_TMPFS, max_size=2),
        "volumes": st.lists(_VOLUMES, max_size=2),
        "devices": st.lists(st.sampled_from(["/dev/null", "/dev/fuse"]), unique=True, max_size=2),
        "group_add": st.lists(st.sampled_from(["video", "44"]), unique=True, max_size=2),
        "cap_add": st.lists(st.sampled_from(["NET_RAW", "SYS_NICE"]), unique=True, max_size=2),
        "device_requests": st.lists(_REQUESTS, max_size=1),
        "runtime": st.sampled_from(["", "nvidia"]),
        "inherits": st.lists(st.sampled_from(KEYS), unique=True, max_size=1),
    },
)
_BLOCKS = st.dictionaries(st.sampled_from(KEYS), st.one_of(st.just({}), _WRITTEN), max_size=7)


@cache
def _features() -> dict[str, Feature]:
    """Core, and one feature per key whose gate is `meta.dev`: what a key adds does not depend on
    the feature's packages."""
    gate = Gate(key="meta.dev", values=(True,))
    gated = {
        key: Feature(name=key, gate=gate, exception=SecurityExceptionNeed(key=key, need="advised"))
        for key in KEYS
    }
    return {
        name: feature for name, feature in load_features().items() if feature.gate is None
    } | gated


def _plan(blocks: dict[str, dict[str, Any]]) -> Plan:
    """Raises PlanError."""
    text = _BASE + "".join(
        f"[security.exceptions.{key}]\n{_lines(block)}" for key, block in blocks.items()
    )
    manifest = parse(text.encode(), "agentbox.toml")
    assert manifest.findings == (), manifest.findings
    lock = lock_of(tuple(sorted(_features())))
    return build_plan(manifest, _features(), serialize_lock(lock), lock, SYSTEM)


def _lines(block: dict[str, Any]) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in block.items())


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else json.dumps(value)


def _service(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(compose(plan, "name@sha256:" + "0" * 64))["services"][
        "agentbox"
    ]
    return found


def _removed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The lines of the baseline that are missing or weaker."""
    lost = [name for name in _KEPT if after.get(name) != before[name]]
    mounts = {row.partition(":")[0]: row for row in after["tmpfs"]}
    for row in before["tmpfs"]:
        target, _, options = row.partition(":")
        kept = {word for word in options.split(",") if not word.startswith("size=")}
        if not kept <= set(mounts.get(target, ":").partition(":")[2].split(",")):
            lost.append(row)
    lost += [str(row) for row in before["volumes"] if row not in after["volumes"]]
    return lost


@cache
def _baseline() -> dict[str, Any]:
    return _service(_plan({}))


@settings(deadline=None)
@given(_BLOCKS)
def test_no_combination_removes_a_line_of_the_baseline(blocks: dict[str, dict[str, Any]]) -> None:
    """Built-in and written deltas, inherited ones too: rejected completely, or only more than
    before."""
    try:
        plan = _plan(blocks)
    except PlanError:
        return
    assert _removed(_baseline(), _service(plan)) == []


@pytest.mark.parametrize("keys", [*((key,) for key in KEYS), KEYS], ids=lambda keys: "+".join(keys))
def test_every_built_in_delta_is_accepted(keys: tuple[ExceptionKey, ...]) -> None:
    """Alone (with what it inherits) and all seven together: something is added, and no line is lost."""
    wanted = {*keys, "gpu-cuda"} if "gaussian-splatting" in keys else set(keys)
    service = _service(_plan({key: {} for key in sorted(wanted)}))
    assert _removed(_baseline(), service) == []
    assert {
        name: value for name, value in service.items() if name not in ("labels", "environment")
    } != {
        name: value for name, value in _baseline().items() if name not in ("labels", "environment")
    }


def test_every_field_reaches_compose() -> None:
    """Devices, groups, capabilities, requests, runtime, volumes and memory file systems."""
    block = {
        "reason": "every field at once", "builtin": False, "devices": ["/dev/fuse"], "group_add": ["44"], "cap_add": ["NET_RAW"],
        "device_requests": [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}], "runtime": "nvidia",
        "volumes": [{"source": "x", "target": "/x", "read_only": True}, {"source": "/srv/data", "target": "/data"}],
        "tmpfs": [{"target": "/t", "size": "1MiB", "exec": True}],
    }  # fmt: skip
    service = _service(_plan({"desktop": block}))
    assert service["devices"] == ["/dev/fuse:/dev/fuse"]
    assert (service["group_add"], service["cap_add"], service["runtime"]) == (
        ["44"],
        ["NET_RAW"],
        "nvidia",
    )
    requests = service["deploy"]["resources"]["reservations"]["devices"]
    assert requests == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]
    assert "/t:mode=700,size=1M,uid=1000,gid=1000,exec,nosuid,nodev" in service["tmpfs"]
    mounts = {row["target"]: row for row in service["volumes"]}
    assert mounts["/x"] == {"type": "volume", "source": "x", "target": "/x", "read_only": True}
    assert mounts["/data"] == {"type": "bind", "source": "/srv/data", "target": "/data"}


def test_the_check_sees_a_removal() -> None:
    """Positive control: a service without a line, with a weaker mount, or without a volume has lost something."""
    base = _baseline()
    assert _removed(base, {**base, "cap_drop": ["NET_RAW"]}) == ["cap_drop"]
    assert (
        len(
            _removed(
                base, {**base, "tmpfs": [row.replace("noexec", "exec") for row in base["tmpfs"]]}
            )
        )
        == 5
    )
    assert len(_removed(base, {**base, "volumes": base["volumes"][1:]})) == 1
