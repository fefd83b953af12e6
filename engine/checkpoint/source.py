"""What any checkpoint offers, whatever its files look like.

A source knows names, shapes, formats, byte ranges, metadata, tokenizer and template. It never
decodes a tensor (``kernels.quant`` does) and never imports torch, so that ``hearth models`` and
the planner can read headers at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

MetadataScalar = int | float | bool | str
MetadataValue = MetadataScalar | Sequence["MetadataValue"]


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One named array of a checkpoint.

    Attributes:
        shape: row-major, slowest first: a linear is (out, in), so quant blocks run along shape[-1].
        format: name of a format in ``kernels.quant.FORMATS``, lower case ("q4_k", "f32").
        file: index into the source's ``files``.
        offset: of the first byte, from the start of that file.
        size_bytes: exact length; ``offset + size_bytes`` was checked against the file.
    """

    name: str
    shape: tuple[int, ...]
    format: str
    file: int
    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """The tokenizer's data as the checkpoint stores it.

    Attributes:
        model: "gpt2" (byte-level BPE) or "llama" (SPM with byte fallback); others are refused.
        pre: name of the pre-tokenizer rule, None where the file has none.
        token_types: one a token: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
        scores: one a token for SPM, else empty.
        merges: "left right" for BPE, else empty.
        end_ids: every id that ends a turn, the union of what the file names.
    """

    model: str
    pre: str | None
    tokens: Sequence[str]
    token_types: Sequence[int]
    scores: Sequence[float]
    merges: Sequence[str]
    bos_id: int | None
    eos_id: int | None
    unknown_id: int | None
    padding_id: int | None
    end_ids: tuple[int, ...]
    add_bos: bool
    add_eos: bool
    add_space_prefix: bool


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
    def metadata(self) -> Mapping[str, MetadataValue]:
        """Key to value, as stored."""

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
        """The tensor's bytes, mapped read-only from the file; valid until ``close``."""

    def close(self) -> None:
        """Unmap and close the files."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
