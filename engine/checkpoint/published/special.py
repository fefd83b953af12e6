"""Special tokens of a published checkpoint: what begins a prompt, what ends a turn.

Several files may name them. tokenizer_config.json wins over config.json; the ends of a turn are the
union of what all of them name. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from engine.checkpoint.labels import quoted
from engine.checkpoint.published.json_text import Json, json_refusal, kind_of
from engine.checkpoint.vocabulary.ends import spelled_ends
from engine.checkpoint.vocabulary.table import VOCABULARY_LIMIT, AddedToken, Vocabulary

_BEGINNINGS: Final = ("<bos>", "<|begin_of_text|>", "<s>")
"""Tokens that begin a prompt where no file says whether they do."""
_ALWAYS: Final = "gemma"
"""Families whose prompts always begin with BOS, whatever a file says."""


class Settings(msgspec.Struct, frozen=True):
    """What is read of tokenizer_config.json; special_tokens_map.json is alike.

    Attributes:
        bos_token, eos_token, pad_token: absent is not the same as null, which means none.
        added_tokens_decoder: markers by id, written as text.
    """

    bos_token: str | AddedToken | msgspec.UnsetType | None = msgspec.UNSET
    eos_token: str | AddedToken | msgspec.UnsetType | None = msgspec.UNSET
    pad_token: str | AddedToken | msgspec.UnsetType | None = msgspec.UNSET
    add_bos_token: bool | None = None
    add_eos_token: bool | None = None
    added_tokens_decoder: dict[str, AddedToken] | None = None


class SpecialTokens:
    """What the files name, looked up in the vocabulary.

    Args:
        settings: tokenizer_config.json, or special_tokens_map.json where there is none.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        settings: Settings,
        config: Mapping[str, Json],
        generation_config: Mapping[str, Json],
    ) -> None:
        self._vocabulary = vocabulary
        self._settings = settings
        text = config.get("text_config")
        self._configs = (
            ("config.json", config),
            ("config.json", text if isinstance(text, dict) else {}),
            ("generation_config.json", generation_config),
        )

    def named(self, role: str) -> int | None:
        """The id of a role ("bos_token"), None where the files give it to no token.

        Raises:
            CheckpointUnreadable: what a file names is no token.
        """
        value = getattr(self._settings, role)
        if value is not msgspec.UNSET:
            return self._by_text(role, value)
        return next(self._configured(f"{role}_id"), None)

    def ends(self) -> tuple[int, ...]:
        """Every id that ends a turn: named by a file, or known by its text.

        Raises:
            CheckpointUnreadable: what a file names is no token.
        """
        ends = {*self._configured("eos_token_id")}
        ends |= spelled_ends(self._vocabulary.tokens, self._vocabulary.token_types)
        by_text = self.named("eos_token")
        if by_text is not None:
            ends.add(by_text)
        return tuple(sorted(ends))

    def begins(self, family: str) -> bool:
        """Whether a prompt begins with BOS."""
        bos = self.named("bos_token")
        if bos is None or family.startswith(_ALWAYS):
            return bos is not None
        if self._settings.add_bos_token is not None:
            return self._settings.add_bos_token
        token = self._vocabulary.tokens[bos]
        return self._vocabulary.begins_with == token or token in _BEGINNINGS

    def _by_text(self, role: str, value: str | AddedToken | None) -> int | None:
        text = value.content if isinstance(value, AddedToken) else value
        if not text:
            return None
        try:
            return self._vocabulary.tokens.index(text)
        except ValueError as error:
            raise json_refusal(
                "tokenizer_config.json",
                f"names {quoted(text)} as {role}, which is none of the "
                f"{len(self._vocabulary.tokens)} tokens",
            ) from error

    def _configured(self, key: str) -> Iterator[int]:
        """Ids that the configs give, those of the embedding's padding left out."""
        count = len(self._vocabulary.tokens)
        for label, config in self._configs:
            value = config.get(key)
            for index in value if isinstance(value, list) else [value]:
                if index is None:
                    continue
                if isinstance(index, bool) or not isinstance(index, int):
                    raise json_refusal(label, f"has {kind_of(index)} as {key}")
                if not -1 <= index < VOCABULARY_LIMIT:
                    raise json_refusal(label, f"has {index} as {key} with {count} tokens")
                if 0 <= index < count:
                    yield index
