"""The compose folder of a built image: `compose_folder PLAN MANIFEST ARCHIVE OUT`. It carries the image's digest, so no
layer can hold it."""

import json
import sys
import tarfile
from pathlib import Path

from agentbox.plan.model import Plan
from agentbox.plan.render.files import compose_files, write

plan_file, manifest, archive, out = map(Path, sys.argv[1:])
plan = Plan.from_json(json.loads(plan_file.read_bytes()))
with tarfile.open(archive) as tar:
    index = tar.extractfile("index.json")
    assert index is not None
    described = json.load(index)["manifests"][0]
tag = described["annotations"]["org.opencontainers.image.ref.name"]
write(compose_files(plan, f"{tag}@{described['digest']}", manifest=manifest.read_bytes()), out)
