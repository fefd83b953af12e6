"""Tokenizer data out of GGUF metadata: tokens, types, scores, merges and special ids.

Tables are bounded and of equal length, ids lie inside the vocabulary, byte tokens spell a byte.
Whether the pre-tokenizer's name is known is the text side's question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.checkpoint.gguf.values import NumberArray, StringArray
from engine.checkpoint.labels import quoted
from engine.checkpoint.source import GenerationDefaults, MetadataValue, TokenizerFacts
from engine.checkpoint.vocabulary.ends import spelled_ends
from engine.checkpoint.vocabulary.table import (
    BYTE,
    BYTE_TOKEN,
    MERGE_LIMIT,
    NORMAL,
    VOCABULARY_LIMIT,
)
from engine.errors import CheckpointUnreadable

_PREFIX = "tokenizer.ggml."
_MODELS = ("gpt2", "llama", "gemma4")
_MODELS_READ = "tokenizers 'gpt2', 'llama' and 'gemma4' are read"
_NONE_IDS = (-1, 0xFFFF_FFFF)
_BOS_RULES = frozenset(
    {
        "llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "tekken", "chameleon",
    }
)  # fmt: skip
"""Pre-tokenizer rules whose models begin with BOS where the file does not say."""


def tokenizer_facts(metadata: Mapping[str, MetadataValue], label: str) -> TokenizerFacts:
    """Collect and check the tokenizer's data.

    Raises:
        CheckpointUnreadable: no tokenizer, one of another kind, or tables that do not fit.
    """
    return _Tables(metadata, label).facts()


def generation_defaults(metadata: Mapping[str, MetadataValue], label: str) -> GenerationDefaults:
    """Sampling values that the file recommends; suppressed ids past the vocabulary are dropped."""
    tables = _Tables(metadata, label)
    suppressed = metadata.get(_PREFIX + "suppress_tokens", ())
    if isinstance(suppressed, NumberArray) and len(suppressed) > VOCABULARY_LIMIT:
        raise tables.refuse("suppress_tokens", f"has {len(suppressed)} entries")
    ids = suppressed if isinstance(suppressed, NumberArray) else ()
    vocabulary = metadata.get(_PREFIX + "tokens", ())
    size = len(vocabulary) if isinstance(vocabulary, StringArray) else 0
    return GenerationDefaults(
        temperature=_number(metadata, "temp"),
        top_k=None if (top_k := _number(metadata, "top_k")) is None else int(top_k),
        top_p=_number(metadata, "top_p"),
        min_p=_number(metadata, "min_p"),
        suppressed_ids=tuple(i for i in ids if isinstance(i, int) and 0 <= i < size),
    )


def _number(metadata: Mapping[str, MetadataValue], name: str) -> float | None:
    value = metadata.get("general.sampling." + name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < float("inf") else None


class _Tables:
    """The tokenizer keys of one header, read by name."""

    def __init__(self, metadata: Mapping[str, MetadataValue], label: str) -> None:
        self._metadata = metadata
        self._label = label

    def facts(self) -> TokenizerFacts:
        """Everything at once."""
        model = self._model()
        pre = self._text("pre") or (model if model == "gemma4" else None)
        spm = model == "llama"
        tokens = self._strings("tokens", VOCABULARY_LIMIT)
        if not tokens:
            raise self.refuse("tokens", "is missing or empty, so the file has no vocabulary")
        types = self._numbers("token_type", len(tokens)) or (NORMAL,) * len(tokens)
        self._check_bytes(tokens, types)
        merges = self._strings("merges", MERGE_LIMIT)
        if not spm and not merges:
            raise self.refuse("merges", "is missing, and this kind of tokenizer needs it")
        return TokenizerFacts(
            model=model,
            pre=pre,
            tokens=tokens,
            token_types=types,
            scores=self._scores(len(tokens)) if spm else (),
            merges=merges,
            bos_id=self._id("bos_token_id", len(tokens), 1 if spm else None),
            eos_id=self._id("eos_token_id", len(tokens), 2 if spm else None),
            unknown_id=self._id("unknown_token_id", len(tokens), 0 if spm else None),
            padding_id=self._id("padding_token_id", len(tokens), None),
            end_ids=self._end_ids(tokens, types, 2 if spm else None),
            add_bos=self._flag("add_bos_token", spm or pre in _BOS_RULES) or model == "gemma4",
            add_eos=self._flag("add_eos_token", False),
            add_space_prefix=self._flag("add_space_prefix", spm),
        )

    def refuse(self, key: str, sentence: str) -> CheckpointUnreadable:
        """A typed error that names the file and the key."""
        return CheckpointUnreadable(
            f"{self._label}: {_PREFIX}{key} {sentence}", file=self._label, key=_PREFIX + key
        )

    def _model(self) -> str:
        model = self._text("model")
        if model is None:
            raise self.refuse("model", "is missing, so the file has no tokenizer")
        if model not in _MODELS:
            raise self.refuse("model", f"is {quoted(model)}; {_MODELS_READ}")
        return model

    def _text(self, key: str) -> str | None:
        value = self._metadata.get(_PREFIX + key)
        if value is not None and not isinstance(value, str):
            raise self.refuse(key, "must be a string")
        return value

    def _flag(self, key: str, default: bool) -> bool:
        value = self._metadata.get(_PREFIX + key, default)
        if not isinstance(value, bool):
            raise self.refuse(key, f"must be a truth value but is {str(value)[:40]!r}")
        return value

    def _strings(self, key: str, limit: int) -> tuple[str, ...]:
        value = self._metadata.get(_PREFIX + key)
        if value is None:
            return ()
        if not isinstance(value, StringArray):
            raise self.refuse(key, "must be an array of strings")
        if len(value) > limit:
            raise self.refuse(key, f"has {len(value)} entries, at most {limit} are allowed")
        return tuple(value)

    def _numbers(self, key: str, wanted: int) -> tuple[int, ...]:
        value = self._metadata.get(_PREFIX + key)
        if value is None:
            return ()
        if not isinstance(value, NumberArray) or value.element_code not in "bBhHiIqQ":
            raise self.refuse(key, "must be an array of whole numbers")
        if len(value) != wanted:
            raise self.refuse(key, f"has {len(value)} entries for {wanted} tokens")
        return tuple(int(number) for number in value)

    def _scores(self, wanted: int) -> tuple[float, ...]:
        value = self._metadata.get(_PREFIX + "scores")
        if value is None:
            return (0.0,) * wanted
        if not isinstance(value, NumberArray) or value.element_code not in "fd":
            raise self.refuse("scores", "must be an array of floating-point numbers")
        if len(value) != wanted:
            raise self.refuse("scores", f"has {len(value)} entries for {wanted} tokens")
        return tuple(value)

    def _check_bytes(self, tokens: Sequence[str], types: Sequence[int]) -> None:
        for index, kind in enumerate(types):
            if kind == BYTE and not BYTE_TOKEN.fullmatch(tokens[index]):
                raise self.refuse("tokens", f"has {tokens[index][:40]!r} as byte token {index}")

    def _id(self, key: str, vocabulary: int, default: int | None) -> int | None:
        value = self._metadata.get(_PREFIX + key)
        if value is None:
            return default if default is not None and default < vocabulary else None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, "must be a whole number")
        if value in _NONE_IDS:
            return None
        if not 0 <= value < vocabulary:
            raise self.refuse(key, f"is {value}, past a vocabulary of {vocabulary}")
        return value

    def _end_ids(
        self, tokens: Sequence[str], types: Sequence[int], eos: int | None
    ) -> tuple[int, ...]:
        """Ids that end a turn: named by key, or known by their text."""
        named = (
            self._id("eos_token_id", len(tokens), eos),
            self._id("eot_token_id", len(tokens), None),
            self._id("eom_token_id", len(tokens), None),
        )
        found = {index for index in named if index is not None}
        return tuple(sorted(found | spelled_ends(tokens, types)))
