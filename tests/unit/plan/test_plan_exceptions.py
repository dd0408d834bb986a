"""The exceptions of a manifest in its plan: written, gated, inherited."""

import pytest
import yaml
from support.plans import SYSTEM, lock_of, manifest_bytes

from agentbox.core.canonical import digest
from agentbox.core.data_files import config_dir
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.features.model import Feature, Gate, SecurityExceptionNeed
from agentbox.manifest.load import parse
from agentbox.manifest.tables.security import ExceptionKey
from agentbox.plan.build import build_plan
from agentbox.plan.errors import PlanError
from agentbox.plan.lockfile.writer import serialize_lock
from agentbox.plan.model import Plan
from agentbox.plan.render.compose import compose
from agentbox.plan.render.security_report import security_report

_DEV = "[meta]\nschema_version = 1\ndev = true\n"


def _plan(text: str, *keys: ExceptionKey) -> Plan:
    """With one feature per key, whose gate is `meta.dev`: real features with exceptions need their
    packages."""
    gate = Gate(key="meta.dev", values=(True,))
    extra = {
        key: Feature(name=key, gate=gate, exception=SecurityExceptionNeed(key=key, need="advised"))
        for key in keys
    }
    on = ("build", "core", *(sorted(keys) if "dev = true" in text else ()))
    lock = lock_of(tuple(sorted(on)))
    manifest = parse(manifest_bytes(text), "agentbox.toml")
    assert manifest.findings == ()
    return build_plan(manifest, load_features() | extra, serialize_lock(lock), lock, SYSTEM)


def test_a_block_counts_only_while_its_gate_is_on() -> None:
    """An orphan block adds nothing; a gate without a block adds nothing either."""
    block = "[security.exceptions.playwright]\n"
    assert _plan(block, "playwright").exceptions == ()
    assert _plan(_DEV, "playwright").exceptions == ()
    assert [row.key for row in _plan(_DEV + block, "playwright").exceptions] == ["playwright"]


def test_what_it_adds_reaches_compose_the_writable_roots_and_the_report() -> None:
    """One delta, visible everywhere; the baseline stays."""
    plan = _plan(_DEV + "[security.exceptions.playwright]\n", "playwright")
    service = yaml.safe_load(compose(plan))["services"]["agentbox"]
    assert "/dev/shm:mode=1777,size=512M,uid=1000,gid=1000,noexec,nosuid,nodev" in service["tmpfs"]
    assert len(service["tmpfs"]) == 6
    assert service["cap_drop"] == ["ALL"]
    assert "/dev/shm" in plan.writable_roots
    assert "| tmpfs | /dev/shm (512 MiB, 1777) | - |" in security_report(plan)


def test_what_is_written_adds_to_what_is_built_in() -> None:
    """The larger size wins, and the operator's reason is shown."""
    plan = _plan(
        _DEV + "[security.exceptions.playwright]\nreason = 'many tabs at once'\n"
        "tmpfs = [{ target = '/dev/shm', size = '1GiB' }, { target = '/cache', size = '8MiB', exec = true }]\n",
        "playwright",
    )
    (delta,) = plan.exceptions
    assert delta.reason == "many tabs at once"
    assert {row.target: (row.size, row.exec) for row in delta.tmpfs} == {
        "/cache": (8 << 20, True),
        "/dev/shm": (1 << 30, False),
    }


def test_a_built_in_delta_may_inherit() -> None:
    """gaussian-splatting uses the devices of gpu-cuda."""
    plan = _plan(
        _DEV + "[security.exceptions.gaussian-splatting]\n", "gaussian-splatting", "gpu-cuda"
    )
    assert [row.driver for row in plan.exceptions[0].device_requests] == ["nvidia"]


_PAIR = """[security.exceptions.desktop]
reason = "one of a pair"
inherits = ["playwright"]
[security.exceptions.playwright]
reason = "two of a pair"
inherits = ["desktop"]
"""


@pytest.mark.parametrize(
    ("text", "on", "said"),
    [
        (
            "[security.exceptions.gaussian-splatting]\n",
            ("gaussian-splatting",),
            "inherits gpu-cuda, whose gate is off",
        ),
        (_PAIR, ("desktop", "playwright"), "playwright inherits itself through desktop"),
        (
            _PAIR.replace('["desktop"]', '["playwright"]'),
            ("desktop", "playwright"),
            "playwright inherits itself",
        ),
    ],
)
def test_what_cannot_be_inherited_is_no_plan(
    text: str, on: tuple[ExceptionKey, ...], said: str
) -> None:
    """A gate that is off, and cycles: rejected even without the rules."""
    with pytest.raises(PlanError, match=said):
        _plan(_DEV + text, *on)


def test_the_digest_is_of_the_list_in_force() -> None:
    """The baseline's list where no exception names another."""
    assert _plan("").digests.seccomp == digest(
        (config_dir() / "seccomp/agentbox.json").read_bytes()
    )
