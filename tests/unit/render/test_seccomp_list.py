"""config/seccomp/agentbox.json: the stock list of the engine for a process without capabilities, only ever tightened."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from agentbox.core.data_files import config_dir
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.seccomp import seccomp_text

LIST = json.loads(seccomp_text())
STOCK = json.loads((Path(__file__).parents[2] / "data/moby-seccomp.json").read_text())
NOTES = (config_dir() / "seccomp/agentbox.md").read_text()
ARCHES = {"amd64", "arm64"}
Rule = tuple[str, int | None, tuple[tuple[int, str, int, int], ...]]


def _applies(row: dict[str, Any]) -> bool:
    """Whether a row of the stock list is for amd64 or arm64, and for a process with no capability at all."""
    includes = row.get("includes") or {}
    return "caps" not in includes and (
        not includes.get("arches") or bool(ARCHES & set(includes["arches"]))
    )


def _rules(rows: list[dict[str, Any]]) -> dict[str, set[Rule]]:
    """Action, errno and argument conditions by system call."""
    found: dict[str, set[Rule]] = {}
    for row in rows:
        conditions = tuple(
            (arg["index"], arg["op"], arg["value"], arg.get("valueTwo", 0))
            for arg in row.get("args") or ()
        )
        for name in row["names"]:
            found.setdefault(name, set()).add((row["action"], row.get("errnoRet"), conditions))
    return found


OURS, THEIRS = _rules(LIST["syscalls"]), _rules([row for row in STOCK["syscalls"] if _applies(row)])


def test_the_form_is_the_flat_one_that_every_engine_reads() -> None:
    """No `includes`, `excludes`, `archMap`: the kubelet and the OCI runtimes know none of them."""
    assert set(LIST) == {"defaultAction", "defaultErrnoRet", "architectures", "syscalls"}
    assert (LIST["defaultAction"], LIST["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    assert LIST["architectures"] == ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"]
    assert all(set(row) <= {"names", "action", "args", "errnoRet"} for row in LIST["syscalls"])


def test_nothing_is_allowed_that_the_stock_list_refuses() -> None:
    """Every rule of ours is one of the stock list's, except for `socket`, which the next test compares."""
    compared = set(OURS) - {"socket"}
    assert len(compared) > 250
    assert {name: OURS[name] for name in compared} == {
        name: THEIRS[name] & OURS[name] for name in compared
    }


def _allowed(rules: set[Rule], family: int, protocol: int) -> bool:
    operators = {"SCMP_CMP_EQ": int.__eq__, "SCMP_CMP_LT": int.__lt__, "SCMP_CMP_GT": int.__gt__}
    given = {0: family, 2: protocol}
    return any(
        all(operators[op](given[index], value) for index, op, value, _two in conditions)
        for _action, _errno, conditions in rules
    )


def test_sockets_are_of_four_families_and_each_is_allowed_by_the_stock_list() -> None:
    """unix, inet, inet6, and netlink for routes, socket lists and device events."""
    ours = {(f, p) for f, p in product(range(64), range(32)) if _allowed(OURS["socket"], f, p)}
    theirs = {(f, p) for f, p in product(range(64), range(32)) if _allowed(THEIRS["socket"], f, p)}
    assert ours < theirs
    assert {family for family, _ in ours} == {1, 2, 10, 16}
    assert {protocol for family, protocol in ours if family == 16} == {0, 4, 15}


def test_what_is_missing_is_exactly_what_the_notes_name() -> None:
    """Each tightening has its row with a reason, and each name that means nothing on 64 bits is listed."""
    named = set(re.findall(r"`([a-z0-9_]+)`", NOTES.split("## Calls of other machines")[1]))
    tightened = {
        name
        for row in re.findall(r"^\| (`[^|]*) \|", NOTES, re.M)
        for name in re.findall(r"`(\w+)`", row)
    }
    missing = set(THEIRS) - set(OURS)
    assert missing == (tightened & set(THEIRS) - {"socket"}) | named
    assert len(tightened) > 4


@pytest.mark.parametrize(
    "name",
    [
        "landlock_create_ruleset",
        "landlock_add_rule",
        "landlock_restrict_self",
        "seccomp",
        "prctl",
        "process_vm_readv",
    ],
)
def test_agents_can_be_confined_further(name: str) -> None:
    """The sandbox of an agent is built inside the box, with these."""
    assert OURS[name] == {("SCMP_ACT_ALLOW", None, ())}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "mount",
            "unshare",
            "setns",
            "bpf",
            "ptrace",
            "keyctl",
            "add_key",
            "io_uring_setup",
            "userfaultfd",
            "kcmp",
        ),
        *(
            "process_vm_writev",
            "pidfd_getfd",
            "get_robust_list",
            "process_mrelease",
            "memfd_secret",
            "name_to_handle_at",
        ),
    ],
)
def test_these_are_refused(name: str) -> None:
    """Each of them was part of escapes, or reaches other processes of the same user."""
    assert name not in OURS


def test_clone3_does_not_exist() -> None:
    """Its flags are in memory, where a filter cannot read them; ENOSYS makes libraries fall back to
    clone."""
    assert OURS["clone3"] == {("SCMP_ACT_ERRNO", 38, ())}


def test_another_stem_is_another_file_or_an_error() -> None:
    """A seccomp field names a file of config/seccomp, never a path and never `unconfined`."""
    for stem in ("unconfined", "../etc/passwd", ""):
        with pytest.raises(RenderError, match="it is not in config/seccomp"):
            seccomp_text(stem)
