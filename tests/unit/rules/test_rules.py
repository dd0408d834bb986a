"""The rules as a set: codes, bands, examples, what they read, and the generated page."""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import tomli_w
from case import cases
from catalogue import FEATURES
from reference.rules import BANDS, COMMAND, TARGET, page

from agentbox.core.paths import CHECKOUT
from agentbox.manifest.features.loader import enabled_features
from agentbox.manifest.features.model import Feature, Gate
from agentbox.manifest.findings import Finding
from agentbox.manifest.keys import keys, map_paths
from agentbox.manifest.load import Manifest, load, parse
from agentbox.manifest.rules._retired import RELEASED, RETIRED
from agentbox.manifest.rules.context import InvalidValue, RuleContext, RuleInput
from agentbox.manifest.rules.discovery import Rule, discover
from agentbox.manifest.rules.engine import ValidationReport, run_rules

SMALLEST = {
    "meta": {"schema_version": 1},
    "adapters": {"pods": {"use": "off"}, "memory": {"use": "off"}},
}
RULES = list(discover().values())
ALL_CASES = tuple(cases())


def laid_over(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """A fragment over the smallest manifest, key by key."""
    both = {**base, **top}
    for name in base.keys() & top.keys():
        if isinstance(base[name], dict) and isinstance(top[name], dict):
            both[name] = laid_over(base[name], top[name])
    return both


def example(rule: Rule, side: str) -> ValidationReport:
    """The report on BAD or GOOD."""
    arguments = {"features": FEATURES, **(rule.context or {}).get(side, {})}
    fragment = getattr(rule, side)
    try:
        data = tomli_w.dumps(laid_over(SMALLEST, tomllib.loads(fragment))).encode()
    except tomllib.TOMLDecodeError:
        data = fragment.encode()
    return run_rules(parse(data, "x"), **arguments)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_examples(rule: Rule) -> None:
    """BAD trips the rule, GOOD does not."""
    assert rule.code in [found.code for found in example(rule, "bad").findings]
    assert rule.code not in [found.code for found in example(rule, "good").findings]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_texts(rule: Rule) -> None:
    """A title, one paragraph of why, and keys that exist."""
    assert rule.title[0].islower() or rule.title[0].isupper()
    assert not rule.title.endswith(".")
    assert rule.reason.endswith(".")
    assert "\n\n" not in rule.reason
    tables = {path.rpartition(".")[0] for path in keys()} | {*map_paths(), "**"}
    assert set(rule.reads) <= set(keys()) | tables
    assert len(set(rule.reads)) == len(rule.reads)


def test_a_number_means_one_thing() -> None:
    """Three digits once whatever the letter, in an existing band, also among retired codes."""
    codes = [*discover(), *RETIRED]
    numbers = [code[1:] for code in discover()]
    assert len(set(numbers)) == len(numbers)
    assert all(re.fullmatch(r"[EWI]\d{3}", code) and code[1] in BANDS for code in codes)
    assert not set(discover()) & set(RETIRED)
    assert set(RELEASED) <= {*discover(), *RETIRED}
    for code, retired in RETIRED.items():
        assert retired.reason, code


def test_the_file_name_is_the_code() -> None:
    """`e103_...py` has E103."""
    for rule in RULES:
        assert rule.check.__module__.rpartition(".")[2].startswith(f"{rule.code.lower()}_")


def test_the_shipped_manifest_has_no_finding() -> None:
    """Of any severity."""
    report = run_rules(load(CHECKOUT / "agentbox.toml"), features=FEATURES)
    assert report.findings == ()
    assert report.not_evaluated == ()
    assert report.rules_run == len(RULES) > 30


def test_the_page_is_fresh() -> None:
    """docs/rules.md equals the texts of the rules."""
    assert TARGET.read_text() == page(), f"stale: run `{COMMAND}`"


def test_a_withdrawn_value_skips_only_the_rules_that_read_it() -> None:
    """They are listed with the key to fix; others run."""
    data = (
        b'[meta]\nschema_version = 1\n[resources]\nmemory = 4\n[api]\npublish_address = "0.0.0.0"\n'
    )
    report = run_rules(parse(data, "x"), features=FEATURES)
    assert {(item.code, item.because) for item in report.not_evaluated} == {
        ("E102", "resources.memory"),
        ("E103", "resources.memory"),
        ("E104", "resources.memory"),
    }
    assert "W206" in [found.code for found in report.findings]


def test_one_bad_entry_of_a_map_hides_no_other() -> None:
    """The skipped entry is named."""
    data = b"""[meta]
schema_version = 1
[security.exceptions.desktop]
reason = "the display server wants it"
cap_add = 3
[security.exceptions.playwright]
reason = "the browser wants this one"
cap_add = ["ALL"]
"""
    report = run_rules(parse(data, "x"), features=FEATURES)
    assert ("E203", "desktop") in [(item.code, item.entry) for item in report.not_evaluated]
    assert ("E203", "security.exceptions.playwright.cap_add") in [
        (f.code, f.key) for f in report.findings
    ]


def test_a_file_that_is_no_toml_ends_the_run() -> None:
    """One finding, no rule."""
    report = run_rules(parse(b"x = ", "x"), features=FEATURES)
    assert [found.code for found in report.findings] == ["E000"]
    assert report.rules_run == 0


def test_findings_are_sorted_by_place() -> None:
    """Line, column, code, whichever rule found them."""
    data = b'[meta]\nschema_version = 1\n[api]\nport = 9091\npublish_address = "0.0.0.0"\n[resources]\ncpus = 0.5\n'
    findings = run_rules(parse(data, "x"), features=FEATURES).findings
    assert list(findings) == sorted(findings, key=lambda found: found.order)
    assert len({found.code for found in findings}) >= 4


def test_only_rules_about_the_environment() -> None:
    """What the boot runs again for a manifest that was validated at build."""
    data = (
        b'[meta]\nschema_version = 1\n[mesh]\nmode = "host"\n[api]\npublish_address = "0.0.0.0"\n'
    )
    report = run_rules(
        parse(data, "x", check=False), features=FEATURES, environment={}, only_environment=True
    )
    assert [found.code for found in report.findings] == ["E017"]
    assert report.rules_run == len([rule for rule in RULES if rule.environment]) == 5


def reading(rule: Rule, data: bytes, arguments: dict[str, Any]) -> set[str]:
    """The keys that a rule reads in one manifest."""
    manifest, enabled = read_once(data)
    features = arguments.get("features", FEATURES)
    given = RuleInput(
        manifest,
        features,
        enabled if features is FEATURES else enabled_features(manifest, features),
        arguments.get("lock"),
        arguments.get("environment"),
        tuple(arguments.get("systems", ())),
    )
    whole = RuleContext(rule.code, given)
    views = [
        RuleContext(rule.code, given, table=table, entry=name)
        for table in rule.each
        for name in (whole.names(table) if table else ("",))
    ]
    for view in views:
        try:
            list(rule.check(view))
        except InvalidValue:
            continue
    return whole.keys_read.union(*(view.keys_read for view in views))


@cache
def read_once(data: bytes) -> tuple[Manifest, Any]:
    """A manifest and its enabled features: each rule reads the same ones."""
    manifest = parse(data, "x")
    return manifest, enabled_features(manifest, FEATURES)


def inputs(rule: Rule) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The cases of all rules: they also reach what a rule reads only in some situations."""
    for case in ALL_CASES:
        if case.code != "E000":
            yield case.manifest.encode(), {"environment": {}}
    for side in ("bad", "good"):
        yield b"[meta]\nschema_version = 1\n", (rule.context or {}).get(side, {})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_reads(rule: Rule) -> None:
    """A rule reads what it declares and nothing else; together the cases make it read all of it."""
    read: set[str] = set()
    for data, arguments in inputs(rule):
        read |= reading(rule, data, arguments)
    if "**" not in rule.reads:
        assert read == set(rule.reads)


def test_a_finding_as_text_and_as_data() -> None:
    """`LINE:COL: SEVERITY CODE KEY: MESSAGE`; the same names in JSON."""
    finding = Finding(
        code="E103", severity="error", key="a.b", line=3, column=4, message="m", remedy="r"
    )
    assert str(finding) == "3:4: error E103 a.b: m"
    assert set(finding.to_json()) == {
        "code",
        "severity",
        "key",
        "line",
        "column",
        "message",
        "remedy",
        "kind",
        "related",
    }


def test_a_gate_is_served_by_a_feature_file_alone() -> None:
    """Without one E606 refuses the switch by name; with one it is silent, and a value that the file lacks is refused."""
    data = b'[meta]\nschema_version = 1\n[toolchains]\ngo = true\n[gpu]\nbackend = "ollama-rocm"\n'

    def refused(*features: Feature) -> set[str]:
        report = run_rules(
            parse(data, "x"), features={feature.name: feature for feature in features}
        )
        return {found.key for found in report.findings if found.code == "E606"} - {
            "adapters.pods.use",
            "adapters.memory.use",
        }

    go = Feature(name="go", gate=Gate(key="toolchains.go", values=(True,)))
    cuda = Feature(name="cuda", gate=Gate(key="gpu.backend", values=("local-cuda",)))
    assert refused() == {"toolchains.go", "gpu.backend"}
    assert refused(go, cuda) == {"gpu.backend"}


@pytest.mark.parametrize(
    ("stack", "keys"), [("x11-openbox", set()), ("wayland-labwc", {"desktop.stack"})]
)
def test_a_stack_of_the_desktop_is_served_by_a_feature_file_alone(
    stack: str, keys: set[str]
) -> None:
    """The desktop has files by stack; without any the desktop itself is refused."""
    data = f'[meta]\nschema_version = 1\n[desktop]\nenabled = true\nstack = "{stack}"\n'.encode()
    x11 = Feature(
        name="x11", gate=Gate(key="desktop.stack", values=("x11-openbox",), when="desktop.enabled")
    )

    def refused(*features: Feature) -> set[str]:
        report = run_rules(
            parse(data, "x"), features={feature.name: feature for feature in features}
        )
        return {
            found.key
            for found in report.findings
            if found.code == "E606" and found.key.startswith("desktop.")
        }

    assert refused() == {"desktop.enabled"}
    assert refused(x11) == keys
