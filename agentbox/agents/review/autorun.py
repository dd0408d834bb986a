"""Files that other programs run by themselves, by name or directory. Reviews list them first.

The list is not a security boundary: any source file runs once it is built or tested.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

# Patterns of a complete path in lower case; one without a slash matches a name in any directory.
# `**` matches any rest.
AUTORUN_PATTERNS: Final[dict[str, tuple[str, ...]]] = {
    "CI runs it": (
        *(
            ".github/workflows/**",
            ".github/actions/**",
            ".gitlab-ci.yml",
            ".gitlab/**",
            ".circleci/**",
            "jenkinsfile*",
        ),
        *(
            "azure-pipelines*.yml",
            ".azure-pipelines/**",
            ".travis.yml",
            "bitbucket-pipelines.yml",
            ".drone.yml",
        ),
        *(
            ".woodpecker.yml",
            ".woodpecker/**",
            ".forgejo/**",
            ".gitea/**",
            ".buildkite/**",
            "appveyor.yml",
            ".cirrus.yml",
        ),
    ),
    "an editor runs it when the directory is opened": (
        *(
            ".vscode/**",
            ".idea/**",
            ".fleet/**",
            ".zed/**",
            "*.code-workspace",
            ".devcontainer/**",
            ".devcontainer.json",
        ),
        *(
            ".vimrc",
            ".exrc",
            ".nvimrc",
            ".nvim.lua",
            ".lvimrc",
            ".ycm_extra_conf.py",
            ".helix/**",
            ".vs/**",
            ".project",
            "nbproject/**",
            "*.xcodeproj/**",
            ".dir-locals-2.el",
            ".vim/**",
            ".dir-locals.el",
            ".sublime-project",
            "*.sublime-project",
        ),
    ),
    "a shell runs it on entering the directory": (
        *(
            ".envrc",
            ".env",
            ".env.*",
            "mise.toml",
            ".mise.toml",
            "mise.local.toml",
            ".mise/**",
            ".config/mise/**",
            ".tool-versions",
            ".autoenv*",
            ".direnv/**",
            "devbox.json",
        ),
        *(
            ".bashrc",
            ".bash_profile",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".inputrc",
            ".ssh/**",
            ".gitconfig",
        ),
    ),
    "a debugger or an interactive shell of a language runs it": (
        *(
            ".pdbrc",
            ".gdbinit",
            ".lldbinit",
            ".rprofile",
            ".ghci",
            ".iex.exs",
            ".irbrc",
            ".pryrc",
            ".ocamlinit",
        ),
    ),
    "git or a hook runs it": (
        *(
            ".githooks/**",
            ".husky/**",
            ".hooks/**",
            "hooks/**",
            ".pre-commit-config.yaml",
            "lefthook.y*ml",
            ".lefthook*",
        ),
        *(".gitattributes", ".gitmodules", ".overcommit.yml", ".lintstagedrc*", ".git*/**"),
    ),
    "an agent takes instructions from it": (
        *(
            "claude.md",
            "agents.md",
            "gemini.md",
            ".claude/**",
            ".codex/**",
            ".gemini/**",
            ".cursor/**",
            ".cursorrules",
        ),
        *(
            ".mcp.json",
            "mcp.json",
            ".aider*",
            ".continue/**",
            ".windsurf*",
            ".opencode/**",
            "opencode.json*",
        ),
        *(
            ".github/copilot-instructions.md",
            ".clinerules*",
            ".roo/**",
            "skill.md",
            ".kiro/**",
            ".junie/**",
            "qwen.md",
            "agentbox.toml",
        ),
    ),
    "a build or a test runs it": (
        *(
            "makefile",
            "gnumakefile",
            "*.mk",
            "cmakelists.txt",
            "*.cmake",
            "configure",
            "configure.ac",
            "meson.build",
        ),
        *(
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
        ),
        *(
            "tox.ini",
            "noxfile.py",
            "pytest.ini",
            "package.json",
            ".npmrc",
            ".yarnrc*",
            ".pnp.cjs",
            "*.config.js",
        ),
        *(
            "*.config.ts",
            "*.config.mjs",
            "*.config.cjs",
            "build.rs",
            ".cargo/**",
            "build.gradle*",
            "settings.gradle*",
        ),
        *(
            "gradlew*",
            "gradle/**",
            "pom.xml",
            ".mvn/**",
            "mvnw*",
            "rakefile",
            "gemfile",
            "*.gemspec",
            "dockerfile*",
        ),
        *(
            "containerfile*",
            "compose*.y*ml",
            "docker-compose*.y*ml",
            "flake.nix",
            "default.nix",
            "shell.nix",
            "justfile",
            ".justfile",
            "composer.json",
            "cargo.toml",
            "rust-toolchain*",
            "package.swift",
            "build.sbt",
            "sconstruct",
            "sconscript",
            "cmakepresets.json",
            "ansible.cfg",
            "directory.build.*",
            ".pnpmfile.cjs",
            "bunfig.toml",
            ".bundle/**",
        ),
        *(
            "taskfile.y*ml",
            "bazel*",
            ".bazelrc",
            "build.bazel",
            "workspace.bazel",
            "vagrantfile",
            "procfile",
            "*.csproj",
            ".eslintrc.*js",
            "pylintrc",
            ".pylintrc",
            ".mypy.ini",
            "mypy.ini",
            ".rspec",
            "guardfile",
        ),
        *(
            "gulpfile.*",
            "gruntfile.*",
            "karma.conf.*",
            ".mocharc.*",
            ".prettierrc.*js",
            ".babelrc.*js",
            ".rubocop.yml",
        ),
        *(
            "build.zig",
            "mix.exs",
            "makefile.pl",
            "build.pl",
            "wscript",
            "tasks.py",
            "fabfile.py",
            "dodo.py",
            "*.rake",
            "tiltfile",
        ),
    ),
}


IN_REPOSITORY: Final = "git runs programs of its config and hooks: a bare repository"


# Ignored by HFS+ in names (`next_hfs_char` in git's utf8.c).
_IGNORED: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def fold_name(name: str) -> str:
    """A common form for names that some file system treats as equal: some ignore case, HFS+ the
    characters above, NTFS dots and spaces at the end."""
    return _IGNORED.sub("", name).casefold().rstrip(". ")


def is_bare_repository(names: Iterable[str]) -> bool:
    """Whether git takes a directory with these names for a repository (`is_git_directory` in git's
    setup.c): `HEAD` with `objects` and `refs`, or with `commondir`."""
    folded_names = set(map(fold_name, names))
    return "head" in folded_names and (
        {"objects", "refs"} <= folded_names or "commondir" in folded_names
    )


def autorun_reason(path: str) -> str:
    """Why that file runs by itself; "" if nothing is known. Independent of how a file system spells
    the name."""
    folded_path = "/".join(map(fold_name, path.split("/")))
    name = folded_path.rpartition("/")[2]
    for reason, patterns in AUTORUN_PATTERNS.items():
        for pattern in patterns:
            if _matches(pattern, folded_path, name):
                return reason
    return ""


def _matches(pattern: str, path: str, name: str) -> bool:
    if pattern.endswith("/**"):
        directory = pattern[:-3]
        return any(
            fnmatchcase(
                "/".join(path.split("/")[start : start + directory.count("/") + 1]), directory
            )
            for start in _directory_starts(path)
        )
    if "/" in pattern:
        return fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern}")
    return fnmatchcase(name, pattern)


def _directory_starts(path: str) -> range:
    """Positions where a directory of the path may start; the last part is no directory."""
    return range(path.count("/"))
