"""docker's rules go one by one; those of others stay, and so do policies that docker did not set."""

from pathlib import Path

import pytest

from agentbox.host.uninstall import daemon_traces
from agentbox.host.uninstall.daemon_traces import removal_commands, restore_forwarding

SAVED = """\
*mangle
:FORWARD DROP [0:0]
COMMIT
*nat
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:DOCKER - [0:0]
:DOCKER-USER - [0:0]
:MINE - [0:0]
-A INPUT -i docker0 -j ACCEPT
-A FORWARD -j DOCKER-USER
-A FORWARD -i br-lan -m comment --comment "my lan" -j MINE
-A DOCKER -j RETURN
-A DOCKER-USER -j RETURN
COMMIT
"""
NAT = [
    "-t",
    "nat",
    "-D",
    *["POSTROUTING", "-s", "172.17.0.0/16", "!", "-o", "docker0", "-j", "MASQUERADE"],
]


def test_only_rules_of_docker_are_removed() -> None:
    """Rules before the chains to which they lead; the policy in the table filter alone."""
    assert removal_commands(SAVED, "ACCEPT") == [
        NAT,
        ["-t", "filter", "-D", "FORWARD", "-j", "DOCKER-USER"],
        ["-t", "filter", "-D", "DOCKER", "-j", "RETURN"],
        ["-t", "filter", "-D", "DOCKER-USER", "-j", "RETURN"],
        ["-t", "filter", "-P", "FORWARD", "ACCEPT"],
        ["-t", "filter", "-F", "DOCKER"],
        ["-t", "filter", "-F", "DOCKER-USER"],
        ["-t", "filter", "-X", "DOCKER"],
        ["-t", "filter", "-X", "DOCKER-USER"],
    ]


def test_rules_that_the_operator_gave_docker_stay() -> None:
    """With the way to them."""
    rule = "-A DOCKER-USER -s 10.0.0.0/8 -j DROP\n"
    commands = removal_commands(
        SAVED.replace("-A DOCKER-USER -j", f"{rule}-A DOCKER-USER -j"), "DROP"
    )
    assert commands == [
        NAT,
        ["-t", "filter", "-D", "DOCKER", "-j", "RETURN"],
        ["-t", "filter", "-F", "DOCKER"],
        ["-t", "filter", "-X", "DOCKER"],
    ]


def test_a_filter_without_docker_is_left_alone() -> None:
    """Also its policy: somebody else set it."""
    assert removal_commands("*filter\n:FORWARD DROP [0:0]\nCOMMIT\n", "ACCEPT") == []
    opened = SAVED.replace("FORWARD DROP", "FORWARD ACCEPT")
    assert ["-t", "filter", "-P", "FORWARD", "ACCEPT"] not in removal_commands(opened, "ACCEPT")


def test_forwarding_is_changed_only_if_docker_set_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another value now, or a damaged one in the inventory."""
    file = tmp_path / "ip_forward"
    monkeypatch.setattr(daemon_traces, "_FORWARDING", file)
    for now, noted, after in (("1\n", "0", "0"), ("0\n", "1", "0\n"), ("1\n", "x", "1\n")):
        file.write_text(now)
        restore_forwarding(noted)
        assert file.read_text() == after
