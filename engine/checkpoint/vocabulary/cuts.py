"""How a published tokenizer prepares text before its merges run, as records of its own steps.

The records are those steps of a tokenizer.json that leave every character of a text in place;
others (Unigram's character maps, steps that drop text) have no record here and so are refused by
name where the file is read. Pure: no ``tokenizers`` object is made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import msgspec


class Pattern(msgspec.Struct, frozen=True):
    """What a step looks for: a literal text or a regular expression, one of the two."""

    literal: str | None = msgspec.field(name="String", default=None)
    expression: str | None = msgspec.field(name="Regex", default=None)


class Nfc(msgspec.Struct, frozen=True, tag_field="type", tag="NFC"):
    """Unicode's composed form."""


class Nfd(msgspec.Struct, frozen=True, tag_field="type", tag="NFD"):
    """Unicode's decomposed form."""


class Nfkc(msgspec.Struct, frozen=True, tag_field="type", tag="NFKC"):
    """Unicode's composed form, compatible characters made one."""


class Nfkd(msgspec.Struct, frozen=True, tag_field="type", tag="NFKD"):
    """Unicode's decomposed form, compatible characters made one."""


class Replace(msgspec.Struct, frozen=True, tag_field="type", tag="Replace"):
    """Every match becomes ``content``."""

    pattern: Pattern
    content: str


class Prepend(msgspec.Struct, frozen=True, tag_field="type", tag="Prepend"):
    """A text begins with this."""

    prepend: str


class NormalizerSequence(msgspec.Struct, frozen=True, tag_field="type", tag="Sequence"):
    """One step after another."""

    normalizers: tuple[Normalizer, ...]


Behavior = Literal["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]


class Split(msgspec.Struct, frozen=True, tag_field="type", tag="Split"):
    """Text is cut at every match, or with ``invert`` at what lies between the matches."""

    pattern: Pattern
    behavior: Behavior
    invert: bool = False


class ByteLevel(msgspec.Struct, frozen=True, tag_field="type", tag="ByteLevel"):
    """Bytes become printable characters, after GPT-2's cut where ``use_regex``."""

    add_prefix_space: bool = True
    use_regex: bool = True


class Digits(msgspec.Struct, frozen=True, tag_field="type", tag="Digits"):
    """Digits are pieces of their own."""

    individual_digits: bool = False


class Punctuation(msgspec.Struct, frozen=True, tag_field="type", tag="Punctuation"):
    """Punctuation is cut off."""

    behavior: Literal["Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"] = "Isolated"


class Metaspace(msgspec.Struct, frozen=True, tag_field="type", tag="Metaspace"):
    """SPM's spelling of spaces, with one more before a text as ``prepend_scheme`` says."""

    replacement: str = "\u2581"
    prepend_scheme: Literal["first", "never", "always"] = "always"
    split: bool = True


class CutSequence(msgspec.Struct, frozen=True, tag_field="type", tag="Sequence"):
    """One cut after another."""

    pretokenizers: tuple[PreTokenizer, ...]


Normalizer = Nfc | Nfd | Nfkc | Nfkd | Replace | Prepend | NormalizerSequence
PreTokenizer = Split | ByteLevel | Digits | Punctuation | Metaspace | CutSequence


@dataclass(frozen=True, slots=True)
class MarkerFlags:
    """How a marker is matched in a text, where that is not just as it is spelled.

    Attributes:
        normalized: it is looked for in the text as the normalizer leaves it.
        lstrip, rstrip: white space before or after it belongs to it.
        single_word: not inside a word.
    """

    normalized: bool = False
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False


@dataclass(frozen=True, slots=True)
class CutFacts:
    """A published tokenizer's own steps and the flags of its merges.

    Attributes:
        normalizer, pre_tokenizer: the steps; None where there is none.
        ignore_merges: a piece that is a whole token is that token, whatever merges say.
        fuse_unknown: neighbouring unknown characters are one unknown token.
    """

    normalizer: Normalizer | None
    pre_tokenizer: PreTokenizer | None
    ignore_merges: bool = False
    fuse_unknown: bool = False


def normalizer_steps(step: Normalizer | None) -> Iterator[Normalizer]:
    """Every single step in order, those inside sequences too."""
    if isinstance(step, NormalizerSequence):
        for part in step.normalizers:
            yield from normalizer_steps(part)
    elif step is not None:
        yield step


def cut_steps(step: PreTokenizer | None) -> Iterator[PreTokenizer]:
    """Every single cut in order, those inside sequences too."""
    if isinstance(step, CutSequence):
        for part in step.pretokenizers:
            yield from cut_steps(part)
    elif step is not None:
        yield step


def puts_space(cut: CutFacts) -> bool:
    """Whether a space is put before a text that does not follow other text."""
    put = any(isinstance(step, Prepend) for step in normalizer_steps(cut.normalizer))
    return put or any(_without_prefix(step) != step for step in cut_steps(cut.pre_tokenizer))


def continued(cut: CutFacts) -> CutFacts:
    """The same for text that follows other text: no space is put before it."""
    kept = [step for step in normalizer_steps(cut.normalizer) if not isinstance(step, Prepend)]
    cuts = [_without_prefix(step) for step in cut_steps(cut.pre_tokenizer)]
    return replace(
        cut,
        normalizer=NormalizerSequence(tuple(kept)) if kept else None,
        pre_tokenizer=CutSequence(tuple(cuts)) if cuts else None,
    )


def _without_prefix(step: PreTokenizer) -> PreTokenizer:
    match step:
        case ByteLevel():
            return msgspec.structs.replace(step, add_prefix_space=False)
        case Metaspace():
            return msgspec.structs.replace(step, prepend_scheme="never")
        case _:
            return step
