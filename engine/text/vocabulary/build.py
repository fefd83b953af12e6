"""Builds ``tokenizers`` objects from a checkpoint's data: byte-level BPE and SPM.

Markers (control and user-defined tokens) are left to ``engine.text.tokenizer``. Pure but for the
folder in which SPM merges are kept.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer as Engine
from tokenizers import models, normalizers

from engine.checkpoint.source import TokenizerFacts
from engine.errors import CheckpointUnreadable
from engine.text.vocabulary.merges import spm_merges
from engine.text.vocabulary.pieces import CONTROL, NORMAL
from engine.text.vocabulary.rules import find_rule

_MARKER: Final = re.compile(r"[<\[]\S+[>\]]")


def end_ids(facts: TokenizerFacts) -> set[int]:
    """Every id that ends a turn."""
    return {*facts.end_ids} if facts.eos_id is None else {*facts.end_ids, facts.eos_id}


def check_facts(facts: TokenizerFacts) -> None:
    """Refuse data that contradict themselves.

    Raises:
        CheckpointUnreadable: an unknown model, tables of unequal length, an id past the end.
    """
    count = len(facts.tokens)
    if facts.model not in ("gpt2", "llama"):
        raise CheckpointUnreadable(
            f"Tokenizer model {facts.model!r} is not supported; gpt2 and llama are."
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
    named = {"bos": facts.bos_id, "eos": facts.eos_id, "unknown": facts.unknown_id}
    for name, index in [*named.items(), *(("end", index) for index in facts.end_ids)]:
        if index is not None and not 0 <= index < count:
            raise CheckpointUnreadable(
                f"The tokenizer's {name} id {index} is outside its {count} tokens.",
                id=index,
                tokens=count,
            )


def mended_types(facts: TokenizerFacts) -> list[int]:
    """Token types, where ids that begin or end a turn and look like markers count as control."""
    types = list(facts.token_types) or [NORMAL] * len(facts.tokens)
    turn = end_ids(facts)
    for index in turn if facts.bos_id is None else turn | {facts.bos_id}:
        if types[index] != CONTROL and _MARKER.fullmatch(facts.tokens[index]):
            types[index] = CONTROL
    return types


def byte_engine(facts: TokenizerFacts) -> tuple[Engine, tuple[str, ...]]:
    """A byte-level BPE tokenizer without markers, and notes on how the file was read."""
    rule, note = find_rule(facts.pre)
    vocabulary = {token: index for index, token in enumerate(facts.tokens)}
    merges, lost = [], 0
    for merge in facts.merges:
        # A token may itself begin with a space, so the cut is the first space after the start.
        cut = merge.find(" ", 1)
        left, right = merge[:cut], merge[cut + 1 :]
        if cut > 0 and left in vocabulary and right in vocabulary and left + right in vocabulary:
            merges.append((left, right))
        else:
            lost += 1
    engine = Engine(models.BPE(vocabulary, merges, ignore_merges=rule.ignore_merges))
    normalizer = rule.normalizer()
    if normalizer is not None:
        engine.normalizer = normalizer
    engine.pre_tokenizer = rule.pre_tokenizer()
    notes = [note] if note else []
    if lost:
        notes.append(f"{lost} of {len(facts.merges)} tokenizer merges name unknown tokens.")
    return engine, tuple(notes)


def spm_engine(facts: TokenizerFacts, cache: Path | None) -> Engine:
    """An SPM tokenizer without markers; ``cache`` as in ``spm_merges``."""
    vocabulary = {token: index for index, token in enumerate(facts.tokens)}
    unknown = None if facts.unknown_id is None else facts.tokens[facts.unknown_id]
    engine = Engine(
        models.BPE(
            vocabulary,
            spm_merges(facts, cache),
            unk_token=unknown,
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    engine.normalizer = space_normalizer(prefixed=facts.add_space_prefix)
    return engine


def space_normalizer(*, prefixed: bool) -> normalizers.Normalizer:
    """SPM's spelling of spaces, with one more before the text where ``prefixed``."""
    spaces = normalizers.Replace(" ", "\u2581")
    return normalizers.Sequence([normalizers.Prepend("\u2581"), spaces] if prefixed else [spaces])
