"""The measures of the structure are computed correctly."""

from pathlib import Path

from measuring import admission, imports, parts, results, sizes, words
from measuring.sources import ROOT, Module, modules


def module(name: str, *lines: str) -> Module:
    """A file that exists in memory only."""
    return Module(ROOT.joinpath(*name.split(".")).with_suffix(".py"), "\n".join([*lines, ""]))


def test_a_cycle_has_those_who_reach_each_other() -> None:
    """Imports for type checks, and those within functions, close a cycle as well; a module that
    only imports one of them is not part of it."""
    found = imports.cycles([
        module("agentbox.a", "from agentbox import b"),
        module("agentbox.b", "if TYPE_CHECKING:", "    import agentbox.c"),
        module("agentbox.c", "def late():", "    from agentbox.a import x"),
        module("agentbox.d", "import agentbox.a"),
    ])  # fmt: skip
    assert found == [("agentbox.a", "agentbox.b", "agentbox.c")]


def test_tokens_leave_out_what_is_no_code() -> None:
    """Comments, docstrings and layout count for nothing; another text does."""
    assert sizes.tokens([module("agentbox.a", '"""Doc."""', "", "x = 1  # why")]) == 3
    assert sizes.tokens([module("agentbox.a", "x = 1", '"""Not a docstring."""')]) == 4


def test_copies_are_found_whatever_they_are_called() -> None:
    """Class names that stand twice, by kind; equal bodies under two names, docstrings aside."""
    body = [f"    total = total + step({number}) * {number}" for number in range(9)]
    one = module(
        "agentbox.a",
        "class A: ...",
        "class _B: ...",
        "def first(total, step):",
        '    """One."""',
        *body,
    )
    two = module("agentbox.b", "class A: ...", "class _B: ...", "def second(total, step):", *body)
    assert sizes.class_names([one, two]) == {"public class names": 1, "private class names": 1}
    assert sizes.bodies([one, two]) == 1
    assert sizes.bodies([one]) == 0


def test_old_words_are_parts_of_names() -> None:
    """Definitions and local variables are distinguished; a word within a word does not count."""
    code = module(
        "agentbox.a",
        "class LeftOut:",
        "    kept: int",
        "def take(wanted, foundation):",
        "    found_here = 1",
    )
    assert words.old_names([code]) == 4
    assert words.old_variables([code]) == 1
    assert words.old_sentences(
        [module("agentbox.a", '"""It is no Mend."""', 'x = "is no key"')]
    ) == {
        "is no": 1,
        "Mend": 0,
    }


def test_the_tree_is_measured() -> None:
    """The measured files exist: a measure of the wrong directory would show perfect figures."""
    found = modules()
    assert len(found) > 500
    assert 0 < len(sizes.entries(found)) < 100
    assert parts.heartbeats(found)
    assert parts.client(found, generated=False)
    assert parts.client(found, generated=True)
    assert parts.http(found)
    assert all(sizes.data_lines().values())
    assert results.suite() != results.ABSENT


def test_a_bench_that_did_not_run_is_told(tmp_path: Path) -> None:
    """Neither a missing file nor a missing claim is a figure."""
    assert results.claim(str(tmp_path / "none"), "any", "p50") == results.ABSENT
    assert results.claim("start", "no such claim", "p50") == results.ABSENT


def test_calls_into_other_files_are_counted() -> None:
    """Each step is entered, and what it calls; the same call again is no further entry."""
    run = admission.spawns()["child with a constraint"]
    calls = admission.profile(run)
    assert calls[0].function == "admit"
    assert {"resolve_policy", "restrict_to_parent", "check_capacity"} <= {
        call.function for call in calls
    }
    assert len(set(calls)) == len(calls)
    assert all(call.caller_file != call.file for call in calls)


def test_calls_that_go_up_are_told() -> None:
    """To a higher layer, and from admission to the rest of agent-host; not to its configuration."""
    inside = ("agents/admission/admit.py", "admit")
    up = ("agents/registry/host_state.py", "host/cli/main.py", "api/app.py")
    down = ("agents/admission/limits.py", "agents/config.py", "policy/policy.py")
    assert all(admission.goes_up(admission.Call(*inside, file, "f")) for file in up)
    assert not any(admission.goes_up(admission.Call(*inside, file, "f")) for file in down)
