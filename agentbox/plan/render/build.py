"""`python -m agentbox.plan.render.build`: the files of layer `config`, written inside a Nix derivation.

The manifest is validated here once; a box whose mounted manifest has the same SHA-256 need not do it again.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import Manifest, load
from agentbox.manifest.rules.engine import run
from agentbox.manifest.rules.lock_input import read_lock
from agentbox.plan.build import make_plan
from agentbox.plan.lockfile.reader import read
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.files import config_layer, write


def main(arguments: Sequence[str]) -> int:
    """Writes the files at their box paths below `--out`. Returns 0, or the exit code of what was refused."""
    given = _parser().parse_args(arguments)
    try:
        _build(given.manifest, given.lock, given.system, given.out, test_hooks=given.test_hooks)
    except AgentboxError as error:
        print(f"{error.message}\n  {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m agentbox.plan.render.build", description=__doc__)
    for name in ("manifest", "lock", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--system", required=True)
    parser.add_argument("--test-hooks", action="store_true")
    return parser


def _build(manifest_file: Path, lock_file: Path, system: str, out: Path, *, test_hooks: bool) -> None:
    manifest, features = load(manifest_file), load_features()
    report = run(manifest, features=features, lock=read_lock(lock_file), systems=(system,))
    if not report.valid:
        raise _refused(manifest, [str(found) for found in report.findings if found.severity == "error"])
    lock = lock_file.read_bytes()
    plan = make_plan(manifest, features, lock, read(lock), system, test_hooks=test_hooks)
    write(config_layer(plan, manifest=manifest.raw, lock=lock), out)


def _refused(manifest: Manifest, errors: Sequence[str]) -> RenderError:
    shown = "".join(f"\n  {manifest.name}:{error}" for error in errors)
    return RenderError(f"cannot render {manifest.name}: it has errors{shown}", "run agentbox config validate")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
