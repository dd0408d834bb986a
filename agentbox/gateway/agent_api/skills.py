"""Skills for agents: the tools `skill/list` and `skill/read`, and the extension
`io.modelcontextprotocol/skills` of MCP (SEP-2640): `skills/list`, `skills/get`, and the files as
resources `skill://<name>/<path>`.

All three serve the bytes of the image's files. An agent sees those that it is told of; this is no
boundary, since the folder is part of the toolchain.
"""

import base64
import mimetypes
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentbox.core.errors import AgentboxError
from agentbox.gateway.agent_api.errors import FAILED, INVALID_PARAMS, AgentApiError
from agentbox.plan.skill_catalogue import MAIN_FILE, SkillCatalogue, SkillRow
from agentbox.policy.rights.authorization import Authorization

EXTENSION: Final = "io.modelcontextprotocol/skills"
_SCHEME: Final = "skill://"
_TTL_MS: Final = 300_000  # for clients; the skills of a box never change while it runs
Arguments = Mapping[str, Any]
SkillTool = Callable[[SkillCatalogue, Authorization, Arguments], Any]


def list_skills(skills: SkillCatalogue, caller: Authorization, _arguments: Arguments) -> Any:
    """The catalogue: name and description of each."""
    return {"skills": skills.offers(caller.skills)}


def read_skill(skills: SkillCatalogue, caller: Authorization, arguments: Arguments) -> Any:
    """One file: text as `content`, otherwise `content_base64`."""
    row = _find(skills, caller, arguments["name"])
    path = arguments.get("path", MAIN_FILE)
    data = _read(skills, caller, row, path)
    common = {"name": row.name, "path": path, "files": sorted(row.files)}
    try:
        return {**common, "content": data.decode()}
    except UnicodeDecodeError:
        return {**common, "content_base64": base64.b64encode(data).decode()}


SKILL_TOOLS: Final[Mapping[str, SkillTool]] = {
    "list_skills": list_skills,
    "read_skill": read_skill,
}


def mcp_list(skills: SkillCatalogue, caller: Authorization, _params: Arguments) -> Any:
    """`skills/list`: one page with the entry of each."""
    entries = [_entry(row) for row in skills.selected(caller.skills)]
    return _cacheable({"skills": entries})


def mcp_get(skills: SkillCatalogue, caller: Authorization, params: Arguments) -> Any:
    """`skills/get` by the URI of a SKILL.md."""
    row, path = _resolve(skills, caller, params)
    if path != MAIN_FILE:
        raise _unknown_uri(params)
    return _cacheable({"skill": _entry(row)})


def list_resources(skills: SkillCatalogue, caller: Authorization, _params: Arguments) -> Any:
    """`resources/list`: the SKILL.md of each; its other files are named by `skills/list`."""
    return _cacheable(
        {
            "resources": [
                {
                    "uri": _uri(row, MAIN_FILE),
                    "name": row.name,
                    "description": row.text("description"),
                    "mimeType": "text/markdown",
                    "size": row.files[MAIN_FILE].size,
                }
                for row in skills.selected(caller.skills)
            ]
        }
    )


def list_templates(_skills: SkillCatalogue, _caller: Authorization, _params: Arguments) -> Any:
    """`resources/templates/list`: none."""
    return _cacheable({"resourceTemplates": []})


def read_resource(skills: SkillCatalogue, caller: Authorization, params: Arguments) -> Any:
    """`resources/read` of a file of a skill."""
    row, path = _resolve(skills, caller, params)
    data = _read(skills, caller, row, path)
    kind = "text/markdown" if path.endswith(".md") else mimetypes.guess_type(path)[0]
    content = {"uri": _uri(row, path), "mimeType": kind or "application/octet-stream"}
    try:
        content["text"] = data.decode()
    except UnicodeDecodeError:
        content["blob"] = base64.b64encode(data).decode()
    return _cacheable({"contents": [content]})


MCP_METHODS: Final[Mapping[str, SkillTool]] = {
    "skills/list": mcp_list,
    "skills/get": mcp_get,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
}


def _entry(row: SkillRow) -> dict[str, Any]:
    return {
        "uri": _uri(row, MAIN_FILE),
        "frontmatter": row.front_matter,
        "resources": [
            {"uri": _uri(row, file.path), "digest": f"sha256:{file.sha256}", "size": file.size}
            for file in row.files.values()
        ],
    }


def _cacheable(result: dict[str, Any]) -> dict[str, Any]:
    """The fields that revision 2026-07-28 requires of such results; earlier ones ignore them."""
    return {"resultType": "complete", **result, "ttlMs": _TTL_MS, "cacheScope": "private"}


def _uri(row: SkillRow, path: str) -> str:
    return f"{_SCHEME}{row.name}/{path}"


def _resolve(
    skills: SkillCatalogue, caller: Authorization, params: Arguments
) -> tuple[SkillRow, str]:
    uri = params.get("uri")
    if not isinstance(uri, str) or not uri.startswith(_SCHEME):
        raise _unknown_uri(params)
    name, _, path = uri.removeprefix(_SCHEME).partition("/")
    row = next((row for row in skills.selected(caller.skills) if row.name == name), None)
    if row is None or path not in row.files:
        raise _unknown_uri(params)
    return row, path


def _find(skills: SkillCatalogue, caller: Authorization, name: str) -> SkillRow:
    row = next((row for row in skills.selected(caller.skills) if row.name == name), None)
    if row is None:
        raise AgentApiError(
            FAILED, f"unknown skill {name[:64]!r}; skill.list shows all skills", "not-found"
        )
    return row


def _read(skills: SkillCatalogue, caller: Authorization, row: SkillRow, path: str) -> bytes:
    if path not in row.files:
        raise AgentApiError(
            FAILED,
            f"skill {row.name} has no file {path[:128]!r}, but {', '.join(sorted(row.files))}",
            "not-found",
        )
    most = int(caller.limits["frame"])
    if row.files[path].size > most:
        raise AgentApiError(
            FAILED,
            f"cannot return a file larger than {most} bytes (limits.frame)",
            "value-too-large",
        )
    try:
        return skills.read(row, path)
    except AgentboxError as error:
        raise AgentApiError(FAILED, error.message, "unavailable") from error


def _unknown_uri(params: Arguments) -> AgentApiError:
    uri = str(params.get("uri"))[:256]
    return AgentApiError(
        INVALID_PARAMS, "unknown resource: skills/list shows all skills", "not-found", uri=uri
    )
