"""The command line as users see it."""

import subprocess
import sys

import click
import pytest

from agentbox.core.paths import CHECKOUT
from agentbox.host.cli.main import COMMAND_HELP, cli


def agentbox(*words: str) -> subprocess.CompletedProcess[str]:
    """One call of the real command."""
    return subprocess.run(
        [sys.executable, "-m", "agentbox", *words], capture_output=True, text=True, check=False
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("verb", COMMAND_HELP)
def test_every_verb_explains_itself(verb: str) -> None:
    """`--help` exits 0, shows the usage and more than one line of what it does."""
    done = agentbox(verb, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Usage: agentbox {verb}")
    assert len(done.stdout.splitlines()) >= 5


@pytest.mark.parametrize("verb", COMMAND_HELP)
def test_the_list_of_verbs_names_every_word_of_a_group(verb: str) -> None:
    """After a colon, and nothing else."""
    found = cli.get_command(click.Context(cli), verb)
    if isinstance(found, click.Group):
        told = COMMAND_HELP[verb].partition(": ")[2].split(", ")
        assert sorted(told) == sorted(found.list_commands(click.Context(found)))


def test_a_misspelt_verb_is_recognised() -> None:
    """Exit 2 and the nearest verb."""
    done = agentbox("statsu")
    assert done.returncode == 2
    assert "Did you mean `status`?" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run --profil x -- true", "No such option '--profil'. Did you mean '--profile'?"),
        (
            "task submit --dedupe-key k -- true",
            "No such option '--dedupe-key'. Did you mean '--dedup-key'?",
        ),
        (
            "agent spawn --parnt x name -- true",
            "No such option '--parnt'. Did you mean '--parent'?",
        ),
        (
            "agent spawn name --parent x -- true",
            "Put --parent before name, or -- between them if it is the command.",
        ),
        ("shell --odd", "No such option '--odd'."),
    ],
)
def test_a_misspelt_option_is_no_command(words: str, told: str) -> None:
    """Exit 2 and the nearest option."""
    done = agentbox(*words.split())
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("line", ["run", "task submit", "agent spawn NAME", "shell"])
@pytest.mark.parametrize(
    ("words", "ran"),
    [("-- --odd -x", ["--odd", "-x"]), ("cmd --help -- -x", ["cmd", "--help", "--", "-x"])],
)
def test_the_options_of_a_command_are_its_own(line: str, words: str, ran: list[str]) -> None:
    """After `--` and after the command itself."""
    found: click.Command = cli
    verbs = [word for word in line.split() if word.islower()]
    for verb in verbs:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), verb) or pytest.fail(verb)
    given = [*line.split()[len(verbs) :], *words.split()]
    parsed = list(found.make_context(verbs[-1], given).params["argv"])
    assert (parsed[1:] if parsed[0] == "--" else parsed) == ran


def test_a_missing_manifest_is_one_sentence() -> None:
    """Exit 2, one sentence, no traceback."""
    done = agentbox("--manifest", "/nonexistent/agentbox.toml", "status")
    assert done.returncode == 2
    assert done.stderr.startswith("agentbox: cannot read /nonexistent/agentbox.toml")
    assert "Traceback" not in done.stderr


def test_the_reference_page_is_fresh() -> None:
    """docs/cli.md equals the help of the commands. Refresh: python tools/write_pages.py"""
    # In a process of its own: click caches what the first caller of a command made of its help option.
    program = CHECKOUT / "tools/write_pages.py"
    done = subprocess.run([sys.executable, program, "--check", "cli"], check=False)
    assert done.returncode == 0, "stale: run `python tools/write_pages.py`"
