"""Which fork of its journal a box writes (`epoch.json`): 0 until a journal was restored. After a
restore other records may follow the same number as before, so a sink gets them as those of another
origin.
"""

from pathlib import Path

from agentbox.adapters.events.journal.segments import damage_error, replace_file
from agentbox.core.canonical import canonical_json
from agentbox.core.files.atomic import read_json

FILE = "epoch.json"


def read_epoch(directory: Path) -> int:
    """The epoch of a journal directory. Raises IntegrityError if the file is unreadable."""
    path = directory / FILE
    try:
        document = read_json(path)
        epoch = 0 if document is None else document["epoch"]
    except (ValueError, KeyError, RecursionError):
        epoch = None
    if type(epoch) is not int or epoch < 0:
        raise damage_error(path, 0, None, "cannot be read")
    return epoch


def write_epoch(directory: Path, epoch: int) -> None:
    """Durable on return. Raises OSError."""
    replace_file(directory / FILE, canonical_json({"epoch": epoch}) + b"\n")
