"""What a call of the command line imports: a bound on its time that the load of a machine does not move."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentbox.settings import CHECKOUT

# Prints what is imported at the end of a call: packages of others, and packages of agentbox with what is in them.
CODE = """
import sys
before = set(sys.modules)
from agentbox.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    print(ended.code, file=sys.stderr)
ours = {".".join(name.split(".")[:2]) for name in sys.modules if name.startswith("agentbox.")}
roots = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names - {"agentbox"}
print(len(sys.modules), *sorted(ours | roots), file=sys.stderr)
"""


def imported(*words: str) -> tuple[str, int, set[str]]:
    """Exit code, number of modules, packages."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    code, modules = done.stderr.splitlines()
    count, *names = modules.split()
    return code, int(count), set(names)


def test_a_valid_manifest_costs_few_imports() -> None:
    """Of others click alone; of agentbox neither plan nor engine state nor clients; 250 ms hang on it (docs/adr/0013)."""
    code, count, names = imported("config", "validate")
    assert code == "0"
    assert {name for name in names if not name.startswith("agentbox.")} == {"click"}
    assert names == {
        "click", "agentbox.canonical", "agentbox.cli", "agentbox.engine", "agentbox.errors", "agentbox.features",
        "agentbox.manifest", "agentbox.rules", "agentbox.sealed", "agentbox.settings",
    }  # fmt: skip
    assert count <= 300, count


def test_what_does_not_fit_brings_jsonschema(tmp_path: Path) -> None:
    """It has the last word on every manifest that is refused."""
    spoilt = tmp_path / "agentbox.toml"
    spoilt.write_text("[meta]\nschema_version = 1\nzebra = 1\n")
    code, _, names = imported("config", "validate", str(spoilt))
    assert code == "1"
    assert "jsonschema" in names


@pytest.mark.parametrize("words", [["--version"], ["config", "--help"]])
def test_asking_for_help_imports_no_manifest(words: list[str]) -> None:
    """Nor anything else that help does not need."""
    code, _, names = imported(*words)
    assert code == "0"
    assert names <= {"click", "agentbox.cli", "agentbox.engine", "agentbox.errors", "agentbox.settings"}
