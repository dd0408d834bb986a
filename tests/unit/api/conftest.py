"""An API that is built and not started."""

from pathlib import Path

import pytest
from support.api_box import TOKEN, api_plan

from agentbox.api.app import Api, build
from agentbox.core.paths import Paths


@pytest.fixture
def built(tmp_path: Path) -> Api:
    """Every slot is local."""
    paths = Paths(tmp_path)
    paths.state_secrets.mkdir(parents=True)
    paths.api_key.write_text(TOKEN)
    return build(api_plan(), paths, None)
