"""`python -m agentbox.plan.render.build`: the files of layer `config`, written inside a Nix
derivation. The manifest is validated here once; a box whose mounted manifest has the same SHA-256
need not repeat it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from agentbox.core.errors import AgentboxError
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.load import Manifest, load
from agentbox.manifest.rules.engine import run_rules
from agentbox.manifest.rules.unvalidated_lock import read_lock
from agentbox.manifest.skills.corpus import skill_folders
from agentbox.plan.build import build_plan
from agentbox.plan.lockfile.reader import parse_lock
from agentbox.plan.render.errors import RenderError
from agentbox.plan.render.files import config_layer, executable_files, write
from agentbox.plan.render.skills import plan_skills


def main(arguments: Sequence[str]) -> int:
    """Writes the files at their box paths below `--out`. Returns 0, or an exit code."""
    options = _parser().parse_args(arguments)
    try:
        _build(
            options.manifest,
            options.lock,
            options.system,
            options.out,
            options.skills,
            test_hooks=options.test_hooks,
        )
    except AgentboxError as error:
        print(f"{error.message}\n  {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agentbox.plan.render.build", description=__doc__
    )
    for name in ("manifest", "lock", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--system", required=True)
    parser.add_argument("--skills", type=Path, help="a folder with the manifest's own skills")
    parser.add_argument("--test-hooks", action="store_true")
    return parser


def _build(
    manifest_file: Path,
    lock_file: Path,
    system: str,
    out: Path,
    own_skills: Path | None,
    *,
    test_hooks: bool,
) -> None:
    manifest, features = load(manifest_file), load_features()
    report = run_rules(manifest, features=features, lock=read_lock(lock_file), systems=(system,))
    if not report.valid:
        raise _validation_error(
            manifest, [str(finding) for finding in report.findings if finding.severity == "error"]
        )
    lock = lock_file.read_bytes()
    plan = build_plan(manifest, features, lock, parse_lock(lock), system, test_hooks=test_hooks)
    has_own = own_skills is not None and own_skills.is_dir()
    skills = plan_skills(plan, skill_folders([own_skills] if own_skills and has_own else []))
    layer = config_layer(plan, manifest=manifest.raw, lock=lock, skills=skills)
    write(layer, out, executable_files(skills))


def _validation_error(manifest: Manifest, errors: Sequence[str]) -> RenderError:
    listing = "".join(f"\n  {manifest.name}:{error}" for error in errors)
    return RenderError(
        f"cannot render {manifest.name}: it has errors{listing}", "run agentbox config validate"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
