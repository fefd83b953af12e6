"""Refuses tokenizer data that contradict themselves or would take memory without bound. Pure."""

from __future__ import annotations

import re
from typing import Final

from engine.checkpoint.source import TokenizerFacts
from engine.errors import CheckpointUnreadable
from engine.text.vocabulary.pieces import CONTROL, NORMAL, UNKNOWN, USER_DEFINED

MODELS: Final = ("gpt2", "llama", "gemma4")
MARKER_KINDS: Final = (UNKNOWN, CONTROL, USER_DEFINED)
MARKER_LIMIT: Final = 1024
"""Characters of one marker; the longest real ones have 32."""
MARKERS_LIMIT: Final = 2_000_000
"""Characters of all markers together; Gemma's 6,415 have 60,000. Each takes about 40 bytes."""
_MARKER: Final = re.compile(r"[<\[]\S+[>\]]")


def check_facts(facts: TokenizerFacts) -> None:
    """Refuse data that contradict themselves.

    Raises:
        CheckpointUnreadable: an unknown model, tables of unequal length, an id past the end, a
            token that is no text, markers beyond all bounds.
    """
    count = len(facts.tokens)
    if facts.model not in MODELS:
        raise CheckpointUnreadable(
            f"Tokenizer model {facts.model!r} is not supported; {', '.join(MODELS)} are."
        )
    if len(facts.token_types) not in (0, count):
        raise CheckpointUnreadable(
            f"The tokenizer has {count} tokens but {len(facts.token_types)} token types.",
            tokens=count,
            token_types=len(facts.token_types),
        )
    if facts.model == "llama" and len(facts.scores) != count:
        raise CheckpointUnreadable(
            f"The tokenizer has {count} tokens but {len(facts.scores)} scores.",
            tokens=count,
            scores=len(facts.scores),
        )
    try:
        "".join(facts.tokens).encode("utf-8")
    except UnicodeEncodeError as error:
        raise CheckpointUnreadable("The tokenizer has tokens that are no valid text.") from error
    _check_ids(facts, count)
    _check_markers(facts)


def end_ids(facts: TokenizerFacts) -> set[int]:
    """Every id that ends a turn."""
    return {*facts.end_ids} if facts.eos_id is None else {*facts.end_ids, facts.eos_id}


def mended_types(facts: TokenizerFacts) -> list[int]:
    """Token types, where ids that begin or end a turn and look like markers count as control."""
    types = list(facts.token_types) or [NORMAL] * len(facts.tokens)
    named = {facts.bos_id, facts.padding_id, *end_ids(facts)}
    for index in named:
        if index is None or types[index] == CONTROL:
            continue
        if _MARKER.fullmatch(facts.tokens[index]):
            types[index] = CONTROL
    return types


def _check_ids(facts: TokenizerFacts, count: int) -> None:
    named = {
        "bos": facts.bos_id,
        "eos": facts.eos_id,
        "unknown": facts.unknown_id,
        "padding": facts.padding_id,
    }
    for name, index in [*named.items(), *(("end", index) for index in facts.end_ids)]:
        if index is not None and not 0 <= index < count:
            raise CheckpointUnreadable(
                f"The tokenizer's {name} id {index} is outside its {count} tokens.",
                id=index,
                tokens=count,
            )


def _check_markers(facts: TokenizerFacts) -> None:
    lengths = [
        len(token)
        for token, kind in zip(facts.tokens, facts.token_types, strict=False)
        if kind in MARKER_KINDS
    ]
    longest, total = max(lengths, default=0), sum(lengths)
    if longest > MARKER_LIMIT or total > MARKERS_LIMIT:
        raise CheckpointUnreadable(
            f"The tokenizer's markers have {total} characters, the longest {longest}; at most "
            f"{MARKERS_LIMIT} and {MARKER_LIMIT} are read.",
            total=total,
            longest=longest,
        )
