"""The embedder `static-256`: the mean of token vectors from data files of the package wordllama; it
never uses the network.

The package is located but never imported, because its own loader may start a download.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentbox.contracts.memory import Embedder
from agentbox.core.background.threads import run_in_thread
from agentbox.core.slot_errors import EmbeddingError, ModelMismatch

NAME = "static-256"
DIMS = 256
MAX_TOKENS = 4096
_PROBE = "The quick brown fox jumps over 13 lazy dogs; \u00e9t\u00e9 \u4f60\u597d."
_MATRIX, _TOKENIZER = (
    "weights/l2_supercat_256.safetensors",
    "tokenizers/l2_supercat_tokenizer_config.json",
)


class Static256:
    """A 32 000 x 256 float16 matrix and its tokenizer."""

    dims = DIMS

    def __init__(self, matrix: Any, tokenizer: Any) -> None:
        self._matrix, self._tokenizer = matrix, tokenizer
        probe = ",".join(map(str, self._tokens(_PROBE))).encode()
        self.model_id = f"{NAME}/{hashlib.sha256(matrix.tobytes() + probe).hexdigest()[:16]}"

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        return await run_in_thread(lambda: [self._vector(text) for text in texts])

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return tokens[:MAX_TOKENS]

    def _vector(self, text: str) -> bytes:
        import numpy as np

        tokens = self._tokens(text)
        if not tokens:
            return bytes(4 * DIMS)
        mean = self._matrix[tokens].astype(np.float32).mean(axis=0)
        norm = float(np.linalg.norm(mean))
        vector: bytes = (mean / norm if norm else mean).astype("<f4").tobytes()
        return vector


async def load_embedder(name: str) -> Embedder:
    """Load the embedder. Raises EmbeddingError with the name of a missing file."""
    if name != NAME:
        raise _unknown_embedder(name)
    return await run_in_thread(_load)


class LazyEmbedder:
    """An embedder that is loaded on first use: the matrix would cost start time and memory at every
    boot.

    `files` identifies its data files without reading them.
    """

    def __init__(self, name: str, files: str) -> None:
        self.name, self.files = name, files
        self._loading: asyncio.Future[Embedder] | None = None

    async def get(self) -> Embedder:
        """Return the embedder; concurrent callers load it once. Raises EmbeddingError."""
        if self._loading is None or (
            self._loading.done() and self._loading.exception() is not None
        ):
            self._loading = asyncio.ensure_future(load_embedder(self.name))
        return await asyncio.shield(self._loading)

    async def close(self) -> None:
        """Wait for a load in progress."""
        if self._loading is not None:
            await asyncio.wait({self._loading})


def find_embedder(name: str) -> LazyEmbedder:
    """Return the embedder without loading it. Raises EmbeddingError with the name of a missing
    file."""
    if name != NAME:
        raise _unknown_embedder(name)
    sizes = [f"{_data_file(file).stat().st_size} bytes" for file in (_MATRIX, _TOKENIZER)]
    return LazyEmbedder(name, ", ".join([*_release("wordllama"), *_release("tokenizers"), *sizes]))


async def embed_text(embedder: Embedder, text: str) -> bytes | None:
    """Return the vector; None if the text has no tokens."""
    (vector,) = await embedder.embed([text])
    return vector if any(vector) else None


def check_model(embedder: Embedder, stored: str, dims: int) -> None:
    """Raises ModelMismatch unless this model created the stored vectors."""
    if (stored, dims) != (embedder.model_id, embedder.dims):
        raise ModelMismatch(
            (
                f"cannot use memory before `agentbox memory reembed`: its vectors are of "
                f"{stored}, not of {embedder.model_id}"
            ),
            hint="run `agentbox memory reembed`, or set adapters.memory.embedder back",
            stored=stored,
            configured=embedder.model_id,
        )


def _unknown_embedder(name: str) -> EmbeddingError:
    return EmbeddingError(f"unknown embedder {name!r}; allowed: {NAME}", model=name)


def _load() -> Static256:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    matrix = next(iter(load_file(_data_file(_MATRIX)).values()))
    return Static256(matrix, Tokenizer.from_file(str(_data_file(_TOKENIZER))))


def _release(package: str) -> list[str]:
    """Return the package's release from the name of its metadata directory; `importlib.metadata`
    would take 60 ms."""
    spec = find_spec(package)
    directory = Path(spec.origin or "").parent.parent if spec else Path()
    return sorted(
        path.name.removesuffix(".dist-info") for path in directory.glob(f"{package}-*.dist-info")
    )


def _data_file(name: str) -> Path:
    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise EmbeddingError("cannot embed: the package wordllama is not installed", model=NAME)
    path = Path(spec.origin).parent / name
    if not path.is_file():
        raise EmbeddingError(
            f"cannot embed: {name} of the package wordllama is missing", model=NAME
        )
    return path
