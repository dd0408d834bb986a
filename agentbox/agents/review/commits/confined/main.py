"""Reads `input.json` of its directory and writes what it made of the commits to `out`."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentbox.agents.review.autorun import autorun_reason
from agentbox.agents.review.commits.confined import listing, rest, take, trees
from agentbox.agents.review.commits.confined.git import Git, GitFailed, TooMuch
from agentbox.agents.review.commits.confined.take import span

SEARCH_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
RESULT: Final = "result.json"
BUNDLE_REF: Final = "refs/heads/agentbox/"
MAX_REST: Final = 1_000  # paths of the rest that are listed
_NO_PATCH: Final = ("diff -", "Index: ", "---")  # where git-mailinfo(1) ends a message


def main(directory: Path) -> int:
    """Always writes a result; a bug is a traceback."""
    given = json.loads((directory / "input.json").read_text(encoding="ascii"))
    program = shutil.which("git", path=SEARCH_PATH)
    if program is None:
        result = _failed("history-left-out", "git is not installed where agents run (/usr/bin/git)")
    else:
        try:
            result = _Extraction(program, directory, given).run()
        except TooMuch as error:
            result = _failed("history-left-out", str(error))
        except (GitFailed, ValueError) as error:
            is_bound = "out of memory" in str(error)
            result = _failed("history-left-out" if is_bound else "objects-bad", str(error))
    (directory / "out" / RESULT).write_text(json.dumps(result), encoding="ascii")
    return 0


class _Extraction:
    def __init__(self, program: str, directory: Path, given: Mapping[str, Any]) -> None:
        self._source = Git(program, directory / "source.git")
        self._verified = Git(program, directory / "verified.git")
        self._out, self._given = directory / "out", given
        self._tip, self._start = given["tip"], given["start"]
        self._ref = f"{BUNDLE_REF}{given['name']}"

    def run(self) -> dict[str, Any]:
        """Raises GitFailed, TooMuch, ValueError."""
        count = take.count_commits(self._source, self._tip, self._start)
        if not count:
            return {"count": 0}
        take.copy_objects(self._source, self._verified, self._tip, self._start)
        ids = self._verified.run(
            "rev-list", "--topo-order", "--reverse", *span(self._tip, self._start)
        )
        commits = ids.decode("ascii").split()
        if len(commits) != count:
            raise GitFailed("the stored history differs from the verified one")
        found = listing.write(
            self._verified, self._out / "listing", commits, self._start, self._given["format"]
        )
        self._bundle("bundle", self._tip)
        patches_why = self._patches("patches", found, self._tip)
        return {
            "count": count,
            "parts": found.parts,
            "runs_by_itself": found.runs_by_itself,
            "submodules": found.submodules,
            "patches_why": patches_why,
            **self._rest(found),
        }

    def _bundle(self, name: str, tip: str) -> None:
        self._verified.run("update-ref", self._ref, tip)
        target = str(self._out / name)
        exclude = (f"^{self._start}",) if self._start else ()
        self._verified.run("bundle", "create", "--quiet", target, self._ref, *exclude)

    def _patches(self, name: str, found: listing.Listing, tip: str) -> str:
        """Why there are none, "" if there are."""
        if found.merges:
            return "merge commits have no patches"
        for commit, message in found.messages.items():
            if any(line.startswith(_NO_PATCH) for line in message.split("\n")):
                return f"the message of {commit} has a line that would be read as a patch"
        self._verified.write(
            self._out / name,
            *("format-patch", "--stdout", "--pretty=mboxrd", "--binary", "--full-index"),
            *("--no-renames", "--always", "--root", "--no-ext-diff", "--no-textconv"),
            *("--no-signature", "--topo-order", *span(tip, self._start)),
        )
        return ""

    def _rest(self, found: listing.Listing) -> dict[str, Any]:
        sealed, given = self._given["sealed"], self._given
        start = trees.empty_tree(given["format"])
        if self._start:
            start = self._tree(self._start)
        with rest.SealedFiles(sealed, given["format"]) as files:
            different, untracked = rest.compare(
                self._verified,
                files,
                given["changes"],
                tip_tree=self._tree(self._tip),
                start_tree=start,
            )
            hidden = rest.ignored(self._verified, sealed, untracked) if untracked else frozenset()
            different += [
                rest.RestPath(path, "untracked", files.content(path)[0])
                for path in untracked
                if path not in hidden
            ]
            result: dict[str, Any] = {
                "rest": [[one.path, _marked(one)] for one in different[:MAX_REST]],
                "rest_count": len(different),
                "ignored": len(hidden),
            }
            if different:
                result |= self._commit_rest(files, different, found)
        return result

    def _commit_rest(
        self, files: rest.SealedFiles, different: list[rest.RestPath], found: listing.Listing
    ) -> dict[str, Any]:
        """A failure concerns the rest alone: the commits can still be taken."""
        given = self._given
        try:
            tip = rest.commit(
                self._source,
                files,
                different,
                tip=self._tip,
                ref="refs/heads/rest",
                author=given["author"],
                when=given["when"],
            )
            take.copy_objects(self._source, self._verified, tip, self._tip)
            self._bundle("rest-bundle", tip)
            self._patches("rest-patches", found, tip)
        except (GitFailed, TooMuch, OSError) as error:
            for name in ("rest-bundle", "rest-patches"):
                (self._out / name).unlink(missing_ok=True)
            return {"rest_why": str(error)}
        return {"rest_tip": tip, "rest_why": ""}

    def _tree(self, commit: str) -> str:
        text = self._verified.run("rev-parse", "--verify", f"{commit}^{{tree}}")
        return text.decode("ascii").strip()


def _marked(one: rest.RestPath) -> str:
    """How it differs, and why it runs by itself."""
    reason = autorun_reason(one.path)
    return f"{one.what}, {reason}" if reason else one.what


def _failed(error: str, detail: str) -> dict[str, Any]:
    return {"error": error, "detail": detail}


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main(Path(sys.argv[1])))
