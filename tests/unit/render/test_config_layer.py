"""Layer `config`: what a manifest puts into the image beside the packages."""

from support.plans import plan_of

from agentbox.manifest.features.loader import load_features
from agentbox.manifest.skills.corpus import corpus_dir, skill_names
from agentbox.plan.render.files import config_layer
from agentbox.plan.render.skills import plan_skills

SKILLS = "/opt/agentbox/skills/"


def _skills(text: str) -> dict[str, bytes]:
    plan = plan_of(text)
    files = config_layer(plan, manifest=b"", lock=b"", skills=plan_skills(plan))
    return {
        name.removeprefix(SKILLS): data for name, data in files.items() if name.startswith(SKILLS)
    }


def test_all_skills_by_default() -> None:
    """Every file of the corpus, byte for byte, but of skills whose feature is not enabled."""
    absent = {name for feature in load_features().values() for name in feature.skills}
    files = [
        path
        for path in corpus_dir().rglob("*")
        if path.is_file() and path.relative_to(corpus_dir()).parts[0] not in absent
    ]
    assert _skills("") == {
        path.relative_to(corpus_dir()).as_posix(): path.read_bytes() for path in files
    }
    assert {name.partition("/")[0] for name in _skills("")} == skill_names() - absent


def test_the_skills_that_a_manifest_selects() -> None:
    """`include` without `exclude`, in the plan and in the image alike."""
    text = '[skills.corpus]\ninclude = ["git-*"]\nexclude = ["*-commits", "git-rescue"]\n'
    assert plan_of(text).skills == ("git-history",)
    assert set(_skills(text)) == {"git-history/SKILL.md"}
    assert _skills("[skills.corpus]\ninclude = []\n") == {}
