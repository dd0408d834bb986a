"""The codes of rules: each is a rule or is listed as not in use, and no rule stands outside the list."""

from catalogue import FEATURES

from agentbox.manifest.features.loader import UNGATED, load_features
from agentbox.manifest.features.supported_choices import gates
from agentbox.manifest.rules._retired import RETIRED
from agentbox.manifest.rules.discovery import discover

FILE = "E000"
BASE = [
    "E001",
    "E002",
    "E003",
    "E004",
    "E005",
    "E006",
    "E007",
    "E008",
    "E010",
    "E011",
    "E012",
    "E013",
    "E014",
    "E015",
    "E016",
    "E017",
    "E018",
    "E019",
    "E020",
    "W021",
    "E022",
    "E023",
    "E024",
    "E025",
    "E026",
    "E027",
    "E028",
    "E029",
    "W030",
    "E031",
]
PORTS_AND_RESOURCES = ["E101", "E102", "E103", "E104"]
SECURITY = ["E201", "E202", "E203", "I204", "E205", "W206", "W207", "E208"]
AGENTS = [
    *("E301", "E302", "E303", "E304", "E305", "E306"),
    *("E307", "E308", "E309", "E310", "E311", "E312", "E313"),
]
MESH = ["E401", "E402", "E403", "E404", "W405", "W406"]
IMAGE = ["E501", "W502", "E503"]
DEAD = ["W601", "I602", "W603", "W604", "E605"]
BACKUP = ["E701", "I704", "E707"]
NETWORK = ["E705", "I706"]
THIS_RELEASE = "E606"  # what the schema names and this release does not support; removed when empty
NOT_IN_USE = {"E009", "E021", "E030"}


def test_every_code_is_a_rule() -> None:
    """30 of the base set, 44 of the bands, the file's own, and this release's."""
    bands = [*PORTS_AND_RESOURCES, *SECURITY, *AGENTS, *MESH, *IMAGE, *DEAD, *BACKUP, *NETWORK]
    assert (len(BASE), len(bands)) == (30, 44)
    assert set(discover()) == {FILE, *BASE, *bands, THIS_RELEASE}
    assert set(RETIRED) == NOT_IN_USE


def test_the_catalogue_covers_every_gate() -> None:
    """One feature a gate, and for `gpu.backend` one a backend."""
    by_key: dict[str, set[object]] = {}
    for feature in FEATURES.values():
        if feature.gate is not None:
            by_key.setdefault(feature.gate.key, set()).update(feature.gate.values)
    assert set(by_key) == {*gates(), "mcp.servers"}  # a map: on with an enabled entry
    assert by_key["gpu.backend"] == {"ollama-rocm", "ollama-cuda", "local-cuda"}


def test_the_catalogue_says_what_the_feature_files_say() -> None:
    """Gates of the shipped features exist in it, with the same exceptions and needs. Where a choice is open only under a
    switch, the catalogue has the switch."""
    stood_in = {
        (feature.gate.key, value): feature.exception
        for feature in FEATURES.values()
        if feature.gate
        for value in feature.gate.values
    }
    for name, feature in load_features().items():
        assert (feature.gate is None) == (name in UNGATED)
        for value in feature.gate.values if feature.gate else ():
            assert feature.gate is not None
            opened = (feature.gate.when, True) if feature.gate.when else (feature.gate.key, value)
            assert stood_in[opened] == feature.exception, name
