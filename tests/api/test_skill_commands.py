"""Every command block of every skill runs in a real agent: confined, at the agent API, in a copy of
a small repository."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from skipping import machine_lacks
from support.skills_box import install_ctl, install_skills, sample_repository
from support.story_box import StoryBox

from agentbox.agents.runs.launch_spec import SEARCH_PATH
from agentbox.manifest.features.loader import load_features
from agentbox.manifest.skills.corpus import shipped_folders

BLOCK = re.compile(r"^( *)```sh\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
WORD = re.compile(r"(?:^|[|;&(]|\|\||&&)\s*([a-z][a-z0-9_-]*)\b", re.MULTILINE)
QUOTED = re.compile(r"'[^'\n]*'")
# What a skill needs that is no command of its own.
MODULES = {
    "browser-playwright": "playwright",
    "notebooks-jupyter": "nbformat",
    "tensors-pytorch": "torch",
}
SKILLS = sorted(shipped_folders())


class SkillBox:
    """`names` are those that the blocks have for parts of the repository."""

    def __init__(self, box: StoryBox, programs: Path, names: dict[str, str]) -> None:
        self.box, self.programs, self.names = box, programs, names

    def run(self, blocks: list[str]) -> str:
        """Runs the blocks in one agent, each in a shell that ends at the first error. Raises
        AssertionError with its output."""
        script = "".join(
            f"cat > \"$TMPDIR/block.sh\" <<'END-OF-BLOCK'\n{block}END-OF-BLOCK\n"
            f'echo "== block {number}"\nbash -euo pipefail "$TMPDIR/block.sh" || exit {number + 10}\n'
            for number, block in enumerate(blocks)
        )
        ran = self.box.client.agents.run_once(
            {
                "name": "reader",
                "argv": ["bash", "-c", f"exec 2>&1\n{script}"],
                "profile": "sandboxed",
                "env": {"PATH": f"{self.programs}:{SEARCH_PATH}", **self.names},
            },
            timeout_s=100,
        )
        said = ran.stdout.decode()
        assert ran.exit.code == 0, f"exit {ran.exit}\n{said}"
        return said


@pytest.fixture(scope="module")
def skill_box(prefix: Path) -> Iterator[SkillBox]:
    box = StoryBox(prefix, "", "", {})
    names = sample_repository(box.paths.workspace)
    install_skills(box.paths)
    programs = install_ctl(box.paths)
    box.paths.token("gateway").parent.mkdir(parents=True, exist_ok=True)
    box.paths.token("gateway").write_text("a-token-of-this-boot")
    with box:
        yield SkillBox(box, programs, names)


def blocks_of(name: str) -> list[str]:
    """The command blocks of a skill, without the indentation of a list."""
    text = (shipped_folders()[name] / "SKILL.md").read_text()
    return [
        re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)
        for indent, block in BLOCK.findall(text)
    ]


def missing_programs(block: str) -> set[str]:
    """Programs of features that a block starts and that this machine has not where agents look."""
    commands = {name for feature in load_features().values() for name in feature.commands}
    return {
        word
        for word in WORD.findall(QUOTED.sub("''", block))
        if word in commands and shutil.which(word, path=SEARCH_PATH) is None
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SKILLS)
def test_the_commands_of_a_skill(skill_box: SkillBox, name: str) -> None:
    """Blocks whose program is here, in their order."""
    blocks = blocks_of(name)
    assert blocks, "a skill without a command says nothing that can be tried"
    lacking = {program for block in blocks for program in missing_programs(block)}
    lacking |= {module for skill, module in MODULES.items() if skill == name}
    runnable = [] if name in MODULES else [row for row in blocks if not missing_programs(row)]
    if runnable:
        skill_box.run(runnable)
    if lacking:
        machine_lacks(f"{', '.join(sorted(lacking))}, which blocks of the skill {name} start")
