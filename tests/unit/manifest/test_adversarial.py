"""A manifest of up to 1 MiB is judged in a second of processor time and 200 MB, or refused for its size."""

import json
import resource
import subprocess
import sys

import pytest

from agentbox.manifest.load import MAX_BYTES, parse
from agentbox.manifest.secrets import is_credential

HEAD = '[meta]\nschema_version = 1\nname = "x"\n'
JUDGE = """
import json, re, sys, time
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import parse
from agentbox.manifest.rules.engine import run_rules
def judge(data):
    begun = time.process_time()
    report = run_rules(parse(data, "x"), features=load_features())
    found = [f"{one.code} {one.message} {one.remedy}" for one in report.findings if one.severity == "error"]
    return time.process_time() - begun, found[:3]
judge(b"[meta]\\nnam = 1")  # what is imported once
seconds, found = judge(sys.stdin.buffer.read())
# Not ru_maxrss, in which the size of the process that forked this one counts too (getrusage(2)).
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10
print(json.dumps([seconds, peak, found]))
"""


def filled(key, unit):
    """A text of almost a mebibyte under a key."""
    table, _, name = key.rpartition(".")
    return f'{HEAD}[{table}]\n{name} = "{(unit * MAX_BYTES)[: MAX_BYTES - 200]}"\n'


def many(line, count):
    return (HEAD + "\n".join(line.replace("@", str(n)) for n in range(count)))[: MAX_BYTES - 1]


DOCUMENTS = {
    "letters": filled("api.token_env", "a"), "tokens": filled("api.token_env", "eyJ"), "JWTs": filled("api.token_env", "eyJaaaaaaaa."),
    "schemes": filled("adapters.beads.dsn_env", "a://"), "nines": filled("resources.memory", "9"), "blanks": filled("resources.memory", " "),
    "a key of 20,000 parts": HEAD + ".".join(["a"] * 20_000) + " = 1", "a header of 200,000": HEAD + "[" + ".".join(["a"] * 200_000) + "]",
    "quoted parts": HEAD + ".".join(['"b c"'] * 20_000) + " = 1", "keys": many("k@ = 1", 110_000), "tables": many("[agents.a@]", 60_000),
    "arrays of tables": many("[[a]]", 170_000), "deep keys": many("k@." + ".".join("a" * 60) + " = 1", 8_000),
    "names": f"{HEAD}[features]\nenable = [" + '"f",' * 200_000 + "]", "arrays": HEAD + "a = " + "[" * 500_000,
    "comments": HEAD + "#\n" * 500_000, "quotes": HEAD + "a = '''" + "''a" * 340_000 + "'''", "digits": HEAD + "a = " + "9" * 5000,
    "float": HEAD + "a = " + "9" * 900_000 + ".0", "patterns": f'{HEAD}[policies.p]\nfs = ["{"?" * 1_000_000}"]', "stars": f'{HEAD}[policies.p]\nfs = ["{"**/" * 300_000}"]',
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_any_manifest_is_judged_soon(name):
    """By the parser, the schema and every rule, in a process of its own."""
    data = DOCUMENTS[name].encode()
    assert len(data) <= MAX_BYTES
    done = subprocess.run(
        [sys.executable, "-c", JUDGE], input=data, capture_output=True, check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20)),
    )  # fmt: skip
    seconds, mebibytes, found = json.loads(done.stdout)
    assert seconds < 1, seconds
    assert mebibytes < 200, mebibytes
    assert found or name in ("comments", "patterns", "stars"), "an invalid manifest passed"
    assert "set_int_max_str_digits" not in str(found)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            ".".join(["a"] * 65) + " = 1",
            "4:127: error E000: not readable: values are nested too deeply: a key has more than 64 parts",
        ),
        ("a = 9" + "9" * 5000, "4:5: error E000: not readable: a number has too many digits"),
        ('[resources]\nmemory = "' + "9" * 20 + 'TiB"', "5:1: error E016 resources.memory"),
        ('[resources]\nmemory = "' + "9" * 5000 + 'TiB"', "5:1: error E016 resources.memory"),
    ],
)
def test_what_is_beyond_any_use_is_refused_by_name(text, why):
    """With its position."""
    (found,) = parse((HEAD + text).encode(), "x").findings
    assert str(found).startswith(why)


def test_dots_in_values_are_no_parts():
    """Text and comments may contain what would be too long a key."""
    dotted = ".".join(["a"] * 500)
    for text in (
        f"# {dotted}",
        f'[meta.x]\ny = "{dotted}"',
        f'a = """\n{dotted}\n"""',
        f"a = '''\n{dotted}'''",
    ):
        assert "parts" not in str(parse((HEAD + text).encode(), "x").findings)


@pytest.mark.parametrize("code", ["\\u001b]52;c;aGk=\\u0007", "\\u009b2J", "\\u202e", "\\n\\r"])
def test_no_finding_steers_a_terminal(code):
    """A key or value is shown with its escapes."""
    for text in (
        f'"{code}" = 1',
        f'[resources]\n"{code}" = 1',
        f'[agents."{code}"]\nx = 1',
        f'[resources]\nmemory = "{code}"',
    ):
        findings = parse((HEAD + text).encode(), "x").findings
        assert findings
        for finding in findings:
            assert f"{finding}{finding.remedy}".isprintable(), repr(str(finding))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("postgres://u:pw@h/d", True), ("say 1a+b://u:p@h", True), ("0http://u:p@h", True), ("http://h:80/", False), ("://u:p@h", False),
        ("x eyJhbGciOiJI.eyJzdWIiOiI.c2lnbmF0dXJl", True), ("aeyJeyJhbGciOiJI.eyJzdWIiOiI.c2lnbmF0dXJl", True), ("eyJhbG.eyJzdWIiOiI.c2lnbmF0dXJl", False),
    ],
)  # fmt: skip
def test_credentials_are_known_as_before(text, wanted):
    """The expressions are linear, and find what they found."""
    assert is_credential(text) is wanted
