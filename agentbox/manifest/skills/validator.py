"""What makes a folder a skill: the rules of the specification (agentskills.io/specification), and
those of this box.

Of the specification: `name` is that of the folder, lower case letters, digits and single hyphens,
at most 64; `description` 1 to 1,024 characters; `compatibility` at most 500; `metadata` maps texts
to texts; no other field. Ours are the bounds below, no link, nothing that a person does not see, no
secret, references that stay inside, and scripts that an interpreter of the image runs.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import unquote, urlsplit

from agentbox.core.errors import AgentboxError, ExitCode
from agentbox.core.visible_text import escape_invisible, is_visible
from agentbox.manifest.skills.front_matter import Document, FrontMatterError, parse
from agentbox.manifest.skills.skill import SKILL_FILE, SkillError, SkillFile, read_files

MAX_BODY_LINES: Final = 500
MAX_BODY_TOKENS: Final = 5000
BYTES_PER_TOKEN: Final = 4  # of English text, as an estimate
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1024, 500
FIELDS: Final = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)
INTERPRETERS: Final = ("bash", "node", "perl", "python3", "sh")
_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PATH_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_SHEBANG: Final = re.compile(
    rf"#!(?:/usr)?/bin/(?:env +)?(?:{'|'.join(INTERPRETERS)})(?: +-[A-Za-z]+)?"
)
_LINK: Final = re.compile(r"!?\[[^\]\n]{0,512}\]\(\s{0,8}<?([^)\s>]{1,512})>?[^)\n]{0,512}\)")
_REFERENCE: Final = re.compile(r"^ {0,3}\[[^\]\n]{1,512}\]:[ \t]{1,8}<?(\S{1,512}?)>?[ \t]*$", re.M)
_CODE: Final = re.compile(r"^ {0,12}```.*?^ {0,12}```[ \t]*$|`[^`\n]*`", re.S | re.M)
_REMOTE: Final = ("http", "https", "mailto")


@dataclass(frozen=True, order=True)
class Problem:
    """`line` 0: the file as a whole. `text` has no invisible character."""

    skill: str
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        place = "/".join(part for part in (self.skill, self.file) if part)
        return f"{place}{f':{self.line}' if self.line else ''}: {self.text}"


def check_skill(directory: Path) -> tuple[Problem, ...]:
    """Everything that is wrong with the skill in that folder, sorted."""
    return tuple(sorted(set(_problems(directory))))


def require_valid(directories: Mapping[str, Path]) -> None:
    """Raises AgentboxError (exit 1) naming each bad skill with its problems."""
    problems = [problem for path in directories.values() for problem in check_skill(path)]
    if problems:
        raise bad_skills(problems)


def bad_skills(problems: list[Problem]) -> AgentboxError:
    """The error that names them."""
    names = sorted({problem.skill for problem in problems})
    listing = "".join(f"\n  {problem}" for problem in problems)
    return AgentboxError(
        f"cannot use skill {', '.join(names)}: {len(problems)} problem"
        f"{'s' if len(problems) > 1 else ''}{listing}",
        "Fix the lines above, or leave the skill out with skills.corpus.exclude.",
        exit_code=ExitCode.BAD,
    )


def _problems(directory: Path) -> Iterator[Problem]:
    name = escape_invisible(directory.name)
    try:
        files = read_files(directory)
    except SkillError as error:
        reason = error.message.partition(": ")[2]
        yield Problem(name, "", 0, escape_invisible(reason))
        return
    for file in files:
        for line, text in _file_problems(file):
            yield Problem(name, escape_invisible(file.path), line, escape_invisible(text))
    main = next((file for file in files if file.path == SKILL_FILE), None)
    if main is None:
        yield Problem(name, "", 0, f"it has no {SKILL_FILE}")
        return
    try:
        document = parse(main.data.decode())
    except UnicodeDecodeError:
        return  # reported with its file
    except FrontMatterError as error:
        yield Problem(name, SKILL_FILE, error.line, escape_invisible(error.reason))
        return
    for line, text in (*_field_problems(document, directory.name), *_body_problems(document)):
        yield Problem(name, SKILL_FILE, line, escape_invisible(text))
    for file in files:
        for line, text in _reference_problems(file, files):
            yield Problem(name, escape_invisible(file.path), line, escape_invisible(text))


def _field_problems(document: Document, folder: str) -> Iterator[tuple[int, str]]:
    fields, line_of = document.fields, document.lines
    for key in fields:
        if key not in FIELDS:
            yield line_of[key], f"unknown field {key}: use {', '.join(sorted(FIELDS))}"
    for key in FIELDS - {"metadata"}:
        if not isinstance(fields.get(key, ""), str):
            yield line_of[key], f"{key} must be a text"
    if isinstance(fields.get("metadata", {}), str):
        yield line_of["metadata"], "metadata must be keys with texts"
    name, about = str(fields.get("name", "")), fields.get("description", "")
    if not name:
        yield 1, "name is missing"
    elif name != folder:
        yield line_of["name"], f"name {name} is not that of its folder, {folder}"
    if len(folder) > MAX_NAME or not _NAME.fullmatch(folder):
        yield (
            1,
            (
                f"the name {folder} must have 1 to {MAX_NAME} lower case letters, digits and "
                "single hyphens between them"
            ),
        )
    if isinstance(about, str) and not about.strip():
        yield 1, "description is missing: say what the skill does and when to use it"
    for key, most in (("description", MAX_DESCRIPTION), ("compatibility", MAX_COMPATIBILITY)):
        value = fields.get(key)
        if isinstance(value, str) and len(value) > most:
            yield line_of[key], f"{key} has {len(value)} characters, of at most {most}"
        if key == "compatibility" and value == "":
            yield line_of[key], "compatibility is empty: leave it out"


def _body_problems(document: Document) -> Iterator[tuple[int, str]]:
    body = document.body
    if not body.strip():
        yield document.body_line, "it has no instructions after the front matter"
    if (lines := body.count("\n")) > MAX_BODY_LINES:
        yield document.body_line, f"the body has {lines} lines, of at most {MAX_BODY_LINES}"
    if (tokens := len(body.encode()) // BYTES_PER_TOKEN) > MAX_BODY_TOKENS:
        yield (
            document.body_line,
            (
                f"the body has about {tokens} tokens, of at most {MAX_BODY_TOKENS}: "
                "move parts to files of references/"
            ),
        )


def _file_problems(file: SkillFile) -> Iterator[tuple[int, str]]:
    from agentbox.policy.redaction.detectors import find_secrets

    if not all(_PATH_PART.fullmatch(part) for part in file.path.split("/")):
        yield 0, "a file's name has letters, digits, `.`, `_` and `-`, and starts with none of `.-`"
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        if not file.path.startswith("assets/") or file.executable:
            yield 0, "it is not UTF-8 text; only files of assets/ that are not executable may be so"
        return
    for number, line in enumerate(text.split("\n"), 1):
        hidden = next((c for c in line if c != "\t" and not is_visible(c)), None)
        if hidden is not None:
            yield number, f"it has a hidden or control character, U+{ord(hidden):04X}"
    for span in find_secrets(text):
        if not _is_placeholder(text[span.start : span.end]):
            yield text.count("\n", 0, span.start) + 1, "it has something that looks like a secret"
    if file.executable or file.path.startswith("scripts/"):
        first = text.partition("\n")[0]
        if not _SHEBANG.fullmatch(first):
            yield 1, f"a script's first line names an interpreter: {', '.join(INTERPRETERS)}"


def _is_placeholder(value: str) -> bool:
    """`$TOKEN`, `<token>`, `{token}`: a place for a value."""
    return value.lstrip("\"'")[:1] in ("$", "<", "{")


def _reference_problems(file: SkillFile, files: tuple[SkillFile, ...]) -> Iterator[tuple[int, str]]:
    """Links of a Markdown file that lead out of the folder, or nowhere."""
    if not file.path.endswith(".md"):
        return
    text = file.data.decode(errors="replace")
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    there = {row.path for row in files}
    there |= {str(parent) for path in there for parent in PurePosixPath(path).parents}
    for match in (*_LINK.finditer(prose), *_REFERENCE.finditer(prose)):
        reason = _reference_problem(match[1], PurePosixPath(file.path).parent, there)
        if reason:
            yield prose.count("\n", 0, match.start()) + 1, f"the link {match[1]} {reason}"


def _reference_problem(target: str, base: PurePosixPath, there: set[str]) -> str:
    try:
        parts = urlsplit(target)
    except ValueError:
        return "is no address"
    if parts.scheme or parts.netloc:
        return "" if parts.scheme in _REMOTE else "is neither a file of the skill nor a web page"
    path = unquote(parts.path)
    if not path:
        return ""  # a heading of the same file
    if path.startswith("/") or ".." in path.split("/"):
        return "leads out of the folder"
    return "" if str(base / path) in there else "leads to no file of the skill"
