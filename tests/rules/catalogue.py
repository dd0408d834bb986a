"""The features that rules are tested with: one a gate, with the numbers that the cases count on.

The files of `config/features/` gain packages, memory and ports as they grow; a rule is a function of whatever they say,
so its cases stand on fixed ones. A test holds both to the same gates and exceptions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentbox.manifest.features.loader import UNGATED, load_features
from agentbox.manifest.features.model import Feature

_REAL: Final = load_features()

FEATURES: Final[Mapping[str, Feature]] = {
    **{name: _REAL[name] for name in UNGATED},
    **load_features(Path(__file__).parent / "features"),
}
