"""Reads what the repository of a branch is when its agent starts."""

import os

from agentbox.agents.review.baseline import GitStart
from agentbox.agents.review.commits.refs import RefRejected, read_refs
from agentbox.agents.review.copying import GIT
from agentbox.core.linux.openat2 import open_beneath


def read_start(branch: int, object_format: str) -> GitStart | None:
    """Of the repository at the root of a new branch, whose descriptor it is. None without one.
    Raises OSError."""
    try:
        descriptor = open_beneath(branch, GIT, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        refs = read_refs(descriptor)
    except RefRejected as error:
        return GitStart(object_format=object_format, problem=str(error))
    finally:
        os.close(descriptor)
    return GitStart(head=refs.tip, object_format=object_format, refs=refs.ids)
