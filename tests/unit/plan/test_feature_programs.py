"""What feature files add to a plan."""

import pytest

from agentbox.manifest.features.model import Feature, FixedPort
from agentbox.plan.errors import PlanError
from agentbox.plan.features.additions import FeatureAdditions
from agentbox.plan.features.additions import build_contribution as contribution_of
from agentbox.plan.model import Password, Port, Program, ReadySignal, VolumePlan
from agentbox.plan.network import check_ports
from agentbox.plan.programs import check_names, stop_budget
from agentbox.plan.storage import with_log_sizes

_EDITOR = {
    "name": "editor",
    "priority": 60,
    "argv": ["/usr/bin/editor", "--port", "8080"],
    "ready": {"by": "tcp", "target": "127.0.0.1:8080"},
}


VALUES = {
    "desktop.port": 5901,
    "desktop.on": True,
    "desktop.password_env": "SCREEN",
    "desktop.names": ["a"],
}


def contribution(features: list[Feature]) -> FeatureAdditions:
    """On a 64-bit PC, with a few values."""
    return contribution_of(features, VALUES, "x86_64-linux", "3.13")


def _feature(**tables: object) -> Feature:
    return Feature(name="editor", **tables)  # type: ignore[arg-type]


def test_a_program_of_a_feature_joins_the_group_and_logs_to_a_file() -> None:
    """One group, so that supervisord spends one tick on all of them when it stops."""
    found = contribution([_feature(programs=(_EDITOR,))]).programs
    assert found == (
        Program(
            name="editor",
            priority=60,
            argv=("/usr/bin/editor", "--port", "8080"),
            required=True,
            ready=ReadySignal(by="tcp", target="127.0.0.1:8080"),
            startsecs=1,
            log="file",
            group="features",
        ),
    )


def test_a_group_stops_as_slowly_as_its_slowest_member() -> None:
    """Its members are stopped side by side, groups one after another, with a tick each."""
    two = contribution(
        [_feature(programs=(_EDITOR, {**_EDITOR, "name": "b", "stop_seconds": 9}))]
    ).programs
    assert stop_budget(two) == 9 + 1


@pytest.mark.parametrize("count", [1, 2, 7])
def test_logs_of_all_programs_fit_into_their_share(count: int) -> None:
    """The sum of maxbytes * (backups + 1) stays within 60 % of the log file system, and is not zero."""
    rows = contribution(
        [_feature(programs=tuple({**_EDITOR, "name": f"p{i}"} for i in range(count)))]
    ).programs
    sized = with_log_sizes(rows, 128 << 20)
    total = sum(row.log_bytes * (row.log_backups + 1) for row in sized)
    assert 0.55 * (128 << 20) < total <= 0.6 * (128 << 20)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ({**_EDITOR, "priority": 10}, "priority 10"),
        ({**_EDITOR, "prority": 10}, "has no field prority"),
        ({"name": "x", "priority": 60}, "argv"),
    ],
)
def test_a_table_that_does_not_fit_names_its_feature(program: dict[str, object], said: str) -> None:
    """A feature file is data that people write."""
    with pytest.raises(PlanError, match=f"feature editor.*{said}"):
        contribution([_feature(programs=(program,))])


def test_ports_volumes_probes_and_environment_are_taken_over() -> None:
    """A published port of a feature is on loopback only; an optional probe is not required."""
    probe = {"id": "e", "kind": "path", "path": "/usr/bin/editor", "optional": True}
    found = contribution(
        [
            _feature(
                ports=(
                    FixedPort(name="web", port=8080),
                    FixedPort(name="inner", port=8081, publish=False),
                ),
                volumes=({"source": "editor", "target": "/var/lib/agentbox/editor"},),
                probes=(probe,),
                env={"EDITOR": "editor"},
            )
        ]
    )
    assert [(row.owner, row.port, row.publish) for row in found.ports] == [
        ("editor", 8080, "127.0.0.1"),
        ("editor", 8081, ""),
    ]
    assert found.volumes == (VolumePlan(source="editor", target="/var/lib/agentbox/editor"),)
    assert (found.probes[0].required, found.probes[0].stage) == (False, "boot")
    assert found.env == {"EDITOR": "editor"}


def test_a_name_or_a_port_is_taken_once() -> None:
    """Both errors name the feature."""
    rows = contribution([_feature(programs=(_EDITOR, _EDITOR))]).programs
    with pytest.raises(PlanError, match="cannot plan program editor: two features define it"):
        check_names(rows)
    ports = (
        Port(owner="api.port", name="api", port=9090),
        Port(owner="editor", name="web", port=9090),
    )
    with pytest.raises(PlanError, match=r"cannot plan port 9090: api.port and editor both use it"):
        check_ports(ports)


def test_words_in_braces_are_filled_in() -> None:
    """A manifest value, the machine's two names, the file of a password; a regular expression's
    count stays unchanged."""
    program = {
        **_EDITOR,
        "argv": ["/usr/bin/editor-{machine}", "--port={desktop.port}", "--auth={password}", "x{2}"],
        "env": {"CPU": "{cpu}", "ON": "{desktop.on}"},
        "ready": {"by": "tcp", "target": "127.0.0.1:{desktop.port}"},
        "password": {"file": "editor-password", "key": "desktop.password_env"},
    }
    probe = {
        "id": "e",
        "kind": "exec",
        "argv": ["/usr/bin/editor"],
        "stdout_regex": "^[0-9]{2}",
        "reason": "it runs",
    }
    found = contribution(
        [_feature(programs=(program,), probes=(probe,), env={"PORT": "{desktop.port}"})]
    )
    only = found.programs[0]
    assert only.argv == (
        "/usr/bin/editor-x86_64",
        "--port=5901",
        "--auth=/run/agentbox/secrets/editor-password",
        "x{2}",
    )
    assert (only.env, only.ready.target) == ({"CPU": "x64", "ON": "true"}, "127.0.0.1:5901")
    assert found.passwords == (Password(file="editor-password", secret="SCREEN"),)
    assert (found.probes[0].stdout_regex, found.probes[0].env) == ("^[0-9]{2}", {"PORT": "5901"})


@pytest.mark.parametrize("word", ["desktop.prot", "desktop.names", "password", "system"])
def test_a_word_that_stands_for_nothing_is_refused(word: str) -> None:
    """Also one whose value is a list, and the password of a program without one."""
    with pytest.raises(PlanError, match=f"feature editor: {{{word}}}"):
        contribution(
            [_feature(programs=({**_EDITOR, "argv": ["/usr/bin/editor", f"{{{word}}}"]},))]
        )


def test_a_variable_has_one_value() -> None:
    """Two features may agree on it; where they differ, the second is named."""
    other = Feature(name="other", env={"LIBS": "/b"})
    assert contribution([_feature(env={"LIBS": "/b"}), other]).env == {"LIBS": "/b"}
    with pytest.raises(
        PlanError, match="feature other: it sets LIBS to '/b', another feature to '/a'"
    ):
        contribution([_feature(env={"LIBS": "/a"}), other])


def test_a_port_may_be_the_manifests() -> None:
    """Then the key owns it."""
    found = contribution([_feature(ports=(FixedPort(name="screen", key="desktop.port"),))])
    assert found.ports == (
        Port(owner="desktop.port", name="screen", port=5901, publish="127.0.0.1"),
    )
