"""What any checkpoint offers, whatever its files look like.

A source knows names, shapes, formats, byte ranges, metadata, tokenizer and template. It never
decodes a tensor (``kernels.quant`` does) and never imports torch, so that ``hearth models`` and
the planner can read headers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from engine.checkpoint.vocabulary.cuts import CutFacts, MarkerFlags


class Dialect(Enum):
    """Whose names and keys a checkpoint uses, and whose changes to the weights it carries.

    ``GGUF``: llama.cpp's. ``PUBLISHED``: those of Hugging Face's transformers, as a model's makers
    publish it. ``MLX``: the published names with the changes of mlx-lm's conversion.
    """

    GGUF = "gguf"
    PUBLISHED = "published"
    MLX = "mlx"


MetadataScalar = int | float | bool | str
MetadataValue = MetadataScalar | Sequence["MetadataValue"]


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One named array of a checkpoint.

    Attributes:
        shape: row-major, slowest first: a linear is (out, in), so quant blocks run along shape[-1].
            Of what codes stand for, not of how they are packed; a single number is (1,).
        format: name of a format in ``kernels.quant.FORMATS``, lower case ("q4_k", "f32").
        file: index into the source's ``files``.
        offset: of the first byte, from the start of that file.
        size_bytes: exact length; ``offset + size_bytes`` was checked against the file.
        scales, minima: numbers in tensors of their own, which ``CheckpointSource.tensors`` does not
            list: a value is ``code * scale + minimum``. Each stands for ``block`` elements of one
            matrix, so their shape is (..., ceil(rows / block[0]), ceil(columns / block[1])).
        block: (rows, columns) of the elements that share a scale; (1, 1) where there are none.
    """

    name: str
    shape: tuple[int, ...]
    format: str
    file: int
    offset: int
    size_bytes: int
    scales: TensorFacts | None = None
    minima: TensorFacts | None = None
    block: tuple[int, int] = (1, 1)

    @property
    def stored_bytes(self) -> int:
        """Bytes in the files, scales and minima included."""
        parts = (self.scales, self.minima)
        return self.size_bytes + sum(part.size_bytes for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """The tokenizer's data as the checkpoint stores it.

    Attributes:
        model: "gpt2" (byte-level BPE), "llama" (SPM with byte fallback, ranked by scores) or
            "gemma4" (merges over text, spaces as U+2581, byte fallback); others are refused.
        pre: name of the pre-tokenizer rule, None where the file has none.
        token_types: one a token: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
        scores: one a token for SPM, else empty.
        tokens: by id; an empty one is a hole, an id without a token.
        merges: for BPE (left, right), or "left right" cut at the first space after its start.
        end_ids: every id that ends a turn, the union of what the file names.
        cut: what a published file itself says of how text is cut; None where ``pre`` names a rule.
        marker_flags: by id, of the markers that are not matched just as they are spelled.
    """

    model: str
    pre: str | None
    tokens: Sequence[str]
    token_types: Sequence[int]
    scores: Sequence[float]
    merges: Sequence[str | tuple[str, str]]
    bos_id: int | None
    eos_id: int | None
    unknown_id: int | None
    padding_id: int | None
    end_ids: tuple[int, ...]
    add_bos: bool
    add_eos: bool
    add_space_prefix: bool
    cut: CutFacts | None = None
    marker_flags: Mapping[int, MarkerFlags] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """Sampling values that the checkpoint itself recommends; None where it says nothing."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    suppressed_ids: tuple[int, ...] = ()


class CheckpointSource(Protocol):
    """An open checkpoint. Owner of its file mappings; a context manager."""

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file of the set, in order."""

    @property
    def name(self) -> str:
        """What to call the model: the file's own name for itself, else the file name."""

    @property
    def architecture(self) -> str:
        """The family key, as in the family table ("llama", "gemma3")."""

    @property
    def dialect(self) -> Dialect:
        """Whose names and keys these are."""

    @property
    def metadata(self) -> Mapping[str, MetadataValue]:
        """Key to value, as stored; of a config.json its keys joined by dots ("rope.theta")."""

    @property
    def tensors(self) -> Mapping[str, TensorFacts]:
        """Name to facts, in file order."""

    @property
    def tokenizer(self) -> TokenizerFacts:
        """Tokenizer data; raises CheckpointUnreadable where the file has none."""

    @property
    def chat_template(self) -> str | None:
        """Jinja source, None for a base model."""

    @property
    def generation_defaults(self) -> GenerationDefaults:
        """Recommended sampling."""

    @property
    def header_digest(self) -> str:
        """SHA-256 (hex) over header bytes and file sizes: the checkpoint's identity."""

    def tensor_bytes(self, name: str) -> memoryview:
        """The tensor's bytes, mapped read-only from the file; valid until ``close``.

        Also those of ``scales`` and ``minima``, by their own names.
        """

    def close(self) -> None:
        """Unmap and close the files."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
