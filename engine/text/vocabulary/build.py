"""Builds ``tokenizers`` objects from a checkpoint's data: byte-level BPE, SPM, and Gemma 4's BPE.

Markers (control and user-defined tokens) are left to ``engine.text.tokenizer``. Pure but for the
folder in which SPM merges are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tokenizers import Tokenizer as Engine
from tokenizers import models

from engine.checkpoint.source import TokenizerFacts
from engine.errors import CheckpointUnreadable
from engine.text.vocabulary.merges import Merges, collector_paused, spm_merges
from engine.text.vocabulary.pieces import BytePieces, Pieces, SpmPieces
from engine.text.vocabulary.rules import find_rule
from engine.text.vocabulary.steps import StepPair, published_steps, rule_steps, space_steps


@dataclass(frozen=True, slots=True)
class Built:
    """An engine without markers, and what belongs to it.

    Attributes:
        steps: what a text goes through; those of a fresh one are the engine's now.
        pieces: what each token stands for.
        notes: what a person should know about how the file was read.
    """

    engine: Engine
    steps: StepPair
    pieces: Pieces
    notes: tuple[str, ...]


def build(facts: TokenizerFacts, types: list[int], cache: Path | None) -> Built:
    """Build what ``facts.model`` asks for; ``cache`` as in ``spm_merges``.

    Raises:
        CheckpointUnreadable: a pattern is none, or pieces are too long to be read as SPM.
    """
    with collector_paused():
        vocabulary = {token: index for index, token in enumerate(facts.tokens) if token}
        rule, note = find_rule(facts.pre) if _ruled(facts) else (None, None)
        notes = [note] if note else []
        if facts.model == "llama":
            merges = spm_merges(facts, cache)
        else:
            merges, lost = known_merges(facts, vocabulary)
            if lost:
                notes.append(f"{lost} of {len(facts.merges)} tokenizer merges name unknown tokens.")
        try:
            steps = _steps(facts) if rule is None else rule_steps(rule)
            ignore = rule.ignore_merges if rule else bool(facts.cut and facts.cut.ignore_merges)
            engine = Engine(_model(facts, vocabulary, merges, ignore))
            steps.fresh.apply(engine)
        except Exception as error:  # what `tokenizers` raises has no narrower type
            raise CheckpointUnreadable(f"The tokenizer cannot be built: {error}") from error
    kind = BytePieces if facts.model == "gpt2" else SpmPieces
    return Built(engine, steps, kind(facts.tokens, types), tuple(notes))


def known_merges(facts: TokenizerFacts, vocabulary: Mapping[str, int]) -> tuple[Merges, int]:
    """Merges of known tokens, best first, and how many others there are."""
    merges = list(map(_pair, facts.merges))
    whole = (left + right for left, right in merges)
    if all(map(vocabulary.__contains__, chain(chain.from_iterable(merges), whole))):
        return merges, 0
    known = [
        (left, right)
        for left, right in merges
        if left in vocabulary and right in vocabulary and left + right in vocabulary
    ]
    return known, len(merges) - len(known)


def _pair(merge: str | tuple[str, str]) -> tuple[str, str]:
    if isinstance(merge, tuple):
        return merge
    # A token may itself begin with a space, so the cut is the first one after the start.
    cut = merge.find(" ", 1)
    return (merge[:cut], merge[cut + 1 :]) if cut > 0 else ("", "")


def _ruled(facts: TokenizerFacts) -> bool:
    """Whether a rule of the table says how text is cut."""
    return facts.model == "gpt2" and facts.cut is None


def _steps(facts: TokenizerFacts) -> StepPair:
    return space_steps(facts) if facts.cut is None else published_steps(facts.cut)


def _model(
    facts: TokenizerFacts, vocabulary: dict[str, int], merges: Merges, ignore_merges: bool
) -> models.BPE:
    if facts.model == "gpt2":
        # Without an unknown token: what cannot be spelled is left out, never a control token.
        return models.BPE(vocabulary, merges, ignore_merges=ignore_merges)
    unknown = None if facts.unknown_id is None else facts.tokens[facts.unknown_id]
    return models.BPE(
        vocabulary,
        merges,
        unk_token=unknown or None,
        fuse_unk=facts.cut is None or facts.cut.fuse_unknown,
        byte_fallback=True,
        ignore_merges=ignore_merges,
    )
