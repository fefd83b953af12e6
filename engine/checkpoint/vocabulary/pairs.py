"""Reads vocab.json with merges.txt, the older way to store a byte-level vocabulary.

The two say nothing of how text is cut before merges run; the family's rule is used.
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.checkpoint.labels import plain, quoted
from engine.checkpoint.vocabulary.table import (
    MERGE_LIMIT,
    VOCABULARY_LIMIT,
    Refuse,
    Vocabulary,
    token_table,
)

_RULES: Final = (
    ("qwen3_5", "qwen35"),
    ("qwen", "qwen2"),
    ("smollm", "smollm"),
    ("gpt2", "gpt-2"),
)
"""Beginnings of a config's model_type, the longest first, and the rule of its models."""


def read_pairs(vocabulary: bytes, merges: bytes, family: str, refuse: Refuse) -> Vocabulary:
    """The vocabulary of the two files.

    Args:
        vocabulary: vocab.json, text to id.
        merges: merges.txt, a line a merge; a first line may name its version.
        family: the config's model_type.
        refuse: makes the error that names vocab.json.

    Raises:
        CheckpointUnreadable: damaged, or out of bounds.
    """
    try:
        ids = msgspec.json.decode(vocabulary, type=dict[str, int])
        lines = merges.decode("utf-8").split("\n")
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise refuse(f"or its merges.txt is not read: {plain(str(error), 200)}") from error
    kept = [line for line in map(_stripped, lines) if line and not line.startswith("#version")]
    if len(ids) > VOCABULARY_LIMIT or len(kept) > MERGE_LIMIT:
        raise refuse(f"has {len(ids)} tokens and {len(kept)} merges, more than are read")
    for line in kept:
        if line.count(" ") != 1:
            raise refuse(f"has a merges.txt with the line {quoted(line)}, which is no pair")
    table = token_table(ids, (), refuse, unknown=None, bytes_spelled=False)
    return Vocabulary(
        model="gpt2",
        tokens=table.tokens,
        token_types=table.types,
        merges=kept,
        pre=next((rule for name, rule in _RULES if family.startswith(name)), None),
    )


def _stripped(line: str) -> str:
    return line.rstrip("\r")
