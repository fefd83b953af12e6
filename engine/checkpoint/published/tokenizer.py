"""The tokenizer of a published checkpoint, out of the files that its folder has.

tokenizer.json is read where there is one, else vocab.json with merges.txt, else tokenizer.model;
tokenizer_config.json and the two configs name the special tokens. Whatever a file says is checked
against the vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from engine.checkpoint.labels import plain, quoted
from engine.checkpoint.published.config import has_file, read_text
from engine.checkpoint.published.json_text import Json, json_refusal
from engine.checkpoint.published.special import Settings, SpecialTokens
from engine.checkpoint.source import TokenizerFacts
from engine.checkpoint.vocabulary.definition import DEFINITION_BYTES, read_definition
from engine.checkpoint.vocabulary.pairs import read_pairs
from engine.checkpoint.vocabulary.sentencepiece import read_sentencepiece
from engine.checkpoint.vocabulary.table import AddedToken, Vocabulary, with_markers

DEFINITION, IDS, MERGES, PIECES = "tokenizer.json", "vocab.json", "merges.txt", "tokenizer.model"
SETTINGS, SPECIAL, ADDED = "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"
_ID_DIGITS: Final = 10
T = TypeVar("T")
Object = Mapping[str, Json]


def published_tokenizer(folder: Path, config: Object, generation_config: Object) -> TokenizerFacts:
    """Collect and check the tokenizer's data.

    Args:
        folder: the checkpoint's.
        config: its config.json as parsed.
        generation_config: its generation_config.json as parsed, empty where there is none.

    Raises:
        CheckpointUnreadable: no tokenizer, one of another kind, damaged or contradicting files.
    """
    settings = _read(folder, SETTINGS, Settings) or Settings()
    named = settings if has_file(folder, SETTINGS) else _read(folder, SPECIAL, Settings)
    family = config.get("model_type")
    family = family if isinstance(family, str) else ""
    vocabulary = _vocabulary(folder, _added(folder, settings), family)
    special = SpecialTokens(vocabulary, named or settings, config, generation_config)
    eos = special.named("eos_token")
    return TokenizerFacts(
        model=vocabulary.model,
        pre=vocabulary.pre,
        tokens=vocabulary.tokens,
        token_types=vocabulary.token_types,
        scores=vocabulary.scores,
        merges=vocabulary.merges,
        bos_id=special.named("bos_token"),
        eos_id=eos,
        unknown_id=vocabulary.unknown_id,
        padding_id=special.named("pad_token"),
        end_ids=special.ends(),
        add_bos=special.begins(family),
        add_eos=settings.add_eos_token is True,
        add_space_prefix=vocabulary.add_space_prefix,
        cut=vocabulary.cut,
        marker_flags=vocabulary.flags,
    )


def _vocabulary(folder: Path, added: tuple[AddedToken, ...], family: str) -> Vocabulary:
    """The vocabulary, with the markers that other files add to it."""
    if has_file(folder, DEFINITION):
        refuse = partial(json_refusal, DEFINITION)
        content = read_text(folder, DEFINITION, DEFINITION_BYTES)
        return with_markers(read_definition(content, refuse), added, refuse)
    if has_file(folder, IDS) and has_file(folder, MERGES):
        ids, merges = (read_text(folder, name, DEFINITION_BYTES) for name in (IDS, MERGES))
        refuse = partial(json_refusal, IDS)
        return with_markers(read_pairs(ids, merges, family, refuse), added, refuse)
    if has_file(folder, PIECES):
        refuse = partial(json_refusal, PIECES)
        content = read_text(folder, PIECES, DEFINITION_BYTES)
        return with_markers(read_sentencepiece(content, refuse), added, refuse)
    raise json_refusal(
        DEFINITION, f"is missing, and so are {IDS} with {MERGES} and {PIECES}: no tokenizer"
    )


def _added(folder: Path, settings: Settings) -> tuple[AddedToken, ...]:
    """Markers of tokenizer_config.json, else of added_tokens.json."""
    listed = settings.added_tokens_decoder
    if listed is None:
        older = _read(folder, ADDED, dict[str, int]) or {}
        # The older file has no flags; what is spelled so structures turns and is no text.
        return tuple(
            AddedToken(content=text, id=index, special=text.startswith("<|"))
            for text, index in older.items()
        )
    for index, token in listed.items():
        if not (index.isascii() and index.isdigit() and len(index) < _ID_DIGITS):
            raise json_refusal(
                SETTINGS, f"lists {quoted(token.content)} with the id {quoted(index)}"
            )
    return tuple(msgspec.structs.replace(token, id=int(i)) for i, token in listed.items())


def _read(folder: Path, name: str, kind: type[T]) -> T | None:
    """A file's object, None where there is no such file. What it says beyond that is passed over:
    numbers of any length, for one, stand where there is no limit to the text."""
    if not has_file(folder, name):
        return None
    try:
        return msgspec.json.decode(read_text(folder, name, DEFINITION_BYTES), type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise json_refusal(name, f"is not read: {plain(str(error), 200)}") from error
