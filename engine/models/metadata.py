"""Typed reading of one family's metadata keys.

Every refusal is one sentence that names the file, the key, what was found and what was wanted.
No torch here, and no default that the caller did not state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from engine.checkpoint.source import CheckpointSource, Dialect, MetadataValue
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models.published import Published, published_values


@dataclass(frozen=True, slots=True)
class FamilyKeys:
    """The metadata of one family, by GGUF's keys without their prefix ("block_count").

    Attributes:
        file: file name for messages.
        prefix: the architecture's name, which GGUF's keys begin with.
        values: by key.
        spelled: by key, what the file itself calls it; where missing, GGUF's way.
    """

    file: str
    prefix: str
    values: Mapping[str, MetadataValue]
    spelled: Mapping[str, str] = field(default_factory=dict)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number of 1 or more; without ``default`` the key must be there."""
        value = self._value(key, default)
        if not _is_whole(value) or value < 1:
            raise self._refusal(key, value, "a whole number of 1 or more")
        return value

    def count_or_zero(self, key: str) -> int:
        """A whole number of 0 or more; 0 where the file does not say."""
        value = self._value(key, 0)
        if not _is_whole(value) or value < 0:
            raise self._refusal(key, value, "a whole number of 0 or more")
        return value

    def uniform_count(self, key: str, default: int | None = None) -> int:
        """A count that a file may also give once a layer, if all layers say the same."""
        value = self._value(key, default)
        if isinstance(value, Sequence) and not isinstance(value, str):
            if len(value) == 0 or any(entry != value[0] for entry in value):
                raise self._refusal(key, value, "one value for all layers")
            value = value[0]
        if not _is_whole(value) or value < 1:
            raise self._refusal(key, value, "a whole number of 1 or more")
        return value

    def layer_count(self, key: str, layer: int, layers: int) -> int:
        """A count of one layer: the only value, or that layer's among one for each."""
        value = self._value(key, None)
        if isinstance(value, Sequence) and not isinstance(value, str):
            if len(value) != layers:
                raise self._refusal(key, value, f"one value, or one for each of {layers} layers")
            value = value[layer]
        if not _is_whole(value) or value < 1:
            raise self._refusal(key, value, "a whole number of 1 or more")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A finite number; without ``default`` the key must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._refusal(key, value, "a number")
        if not math.isfinite(value):
            raise self._refusal(key, value, "a finite number")
        return float(value)

    def positive(self, key: str, default: float | None = None) -> float:
        """A finite number above 0; without ``default`` the key must be there."""
        value = self.number(key, default)
        if value <= 0:
            raise self._refusal(key, value, "a number above 0")
        return value

    def text(self, key: str, default: str) -> str:
        """A string, ``default`` where the file does not say."""
        value = self._value(key, default)
        if not isinstance(value, str):
            raise self._refusal(key, value, "a text")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """A truth value, ``default`` where the file does not say."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._refusal(key, value, "true or false")
        return value

    def flags(self, key: str, count: int) -> tuple[bool, ...]:
        """``count`` truth values, which the file must have."""
        value = self._value(key, None)
        wanted = f"{count} truth values, one a layer"
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != count:
            raise self._refusal(key, value, wanted)
        if not all(entry in (0, 1) for entry in value):
            raise self._refusal(key, value, wanted)
        return tuple(bool(entry) for entry in value)

    def has(self, key: str) -> bool:
        """Whether the file has the key."""
        return key in self.values

    def raw(self, key: str) -> MetadataValue | None:
        """The value as stored, None where the file does not say."""
        return self.values.get(key)

    def unsupported(self, key: str, wanted: str) -> UnsupportedFamily:
        """The error for a key that asks for a variant which does not run."""
        shown, full = _shown(self.raw(key)), self._full(key)
        sentence = f"{self.file} has {full} = {shown}; of this family only {wanted} runs."
        return UnsupportedFamily(sentence, key=full, found=shown)

    def refusal(self, key: str, wanted: str) -> CheckpointUnreadable:
        """The error for a key whose value is there but makes no sense."""
        return self._refusal(key, self.raw(key), wanted)

    def _full(self, key: str) -> str:
        return self.spelled.get(key, f"{self.prefix}.{key}")

    def _value(self, key: str, default: MetadataValue | None) -> MetadataValue:
        value = self.values.get(key, default)
        if value is None:
            sentence = f"{self.file} has no key {self._full(key)}, which this family needs."
            raise CheckpointUnreadable(sentence, key=self._full(key))
        return value

    def _refusal(self, key: str, found: MetadataValue | None, wanted: str) -> CheckpointUnreadable:
        shown = _shown(found)
        sentence = f"{self.file} has {self._full(key)} = {shown}; wanted {wanted}."
        return CheckpointUnreadable(sentence, key=self._full(key), found=shown)


def family_keys(source: CheckpointSource, published: Published | None = None) -> FamilyKeys:
    """The keys of the source's own architecture.

    Args:
        published: how the family's published checkpoints spell what GGUF's keys say.
    """
    file, family = source.files[0].name, source.architecture
    if source.dialect is not Dialect.GGUF:
        return FamilyKeys(
            "config.json", family, *published_values(source.metadata, published or Published())
        )
    prefix = f"{family}."
    own = {
        key.removeprefix(prefix): value
        for key, value in source.metadata.items()
        if key.startswith(prefix)
    }
    return FamilyKeys(file, family, own)


def _is_whole(value: MetadataValue) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: MetadataValue | None) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"an array of {len(value)}"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
