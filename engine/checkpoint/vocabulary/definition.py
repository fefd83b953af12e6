"""Reads a tokenizer.json as data: bounded, typed, and refused by name where it is not understood.

Byte-pair merges are read, over bytes (GPT-2's table) or over text with byte fallback. What the file
would do to a finished list of ids (BOS, truncation, padding) is Hearth's own affair; of it only the
token that the file puts first is kept.
"""

from __future__ import annotations

from typing import Final

import msgspec

from engine.checkpoint.labels import plain, quoted
from engine.checkpoint.vocabulary.cuts import (
    ByteLevel,
    CutFacts,
    Metaspace,
    Normalizer,
    PreTokenizer,
    Replace,
    Split,
    cut_steps,
    normalizer_steps,
    puts_space,
)
from engine.checkpoint.vocabulary.pattern import pattern_problem
from engine.checkpoint.vocabulary.table import (
    MERGE_LIMIT,
    VOCABULARY_LIMIT,
    AddedToken,
    Refuse,
    Vocabulary,
    token_table,
)

DEFINITION_BYTES: Final = 64 << 20
"""Gemma's, the largest known, has 33 MB."""
_VALUES_LIMIT: Final = 4_000_000
"""Commas in the file: a bound on what its values can grow to in memory. Gemma's has 1.3 million."""
_SPACES: Final = ("\u2581", " ")


class _Kind(msgspec.Struct, frozen=True):
    type: str = "BPE"


class _Model(msgspec.Struct, frozen=True):
    vocab: dict[str, int]
    merges: list[str | tuple[str, str]]
    dropout: float | None = None
    unk_token: str | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    fuse_unk: bool = False
    byte_fallback: bool = False
    ignore_merges: bool = False


class _Part(msgspec.Struct, frozen=True):
    id: str = ""


class _Place(msgspec.Struct, frozen=True):
    special: _Part | None = msgspec.field(name="SpecialToken", default=None)


class _After(msgspec.Struct, frozen=True):
    type: str = ""
    single: tuple[_Place, ...] = ()
    processors: tuple[_After, ...] = ()


class _File(msgspec.Struct, frozen=True):
    model: msgspec.Raw
    added_tokens: list[AddedToken] = []
    normalizer: Normalizer | None = None
    pre_tokenizer: PreTokenizer | None = None
    post_processor: msgspec.Raw = msgspec.Raw(b"null")


def read_definition(content: bytes, refuse: Refuse) -> Vocabulary:
    """The vocabulary of a tokenizer.json.

    Args:
        content: the whole file, at most ``DEFINITION_BYTES``.
        refuse: makes the error that names the file.

    Raises:
        CheckpointUnreadable: damaged, out of bounds, or a kind that is not read.
    """
    if content.count(b",") > _VALUES_LIMIT:
        raise refuse(f"has more than {_VALUES_LIMIT} values")
    try:
        file = msgspec.json.decode(content, type=_File)
        kind = msgspec.json.decode(file.model, type=_Kind).type
        if kind != "BPE":
            raise refuse(f"has a model of type {quoted(kind)}; BPE is read")
        model = msgspec.json.decode(file.model, type=_Model)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise refuse(f"is not read: {plain(str(error), 200)}") from error
    _check_model(model, refuse)
    _check_steps(file, refuse)
    return _vocabulary(file, model, refuse)


def _vocabulary(file: _File, model: _Model, refuse: Refuse) -> Vocabulary:
    cuts = tuple(cut_steps(file.pre_tokenizer))
    bytes_named = any(isinstance(step, ByteLevel) for step in cuts)
    if not bytes_named and not (model.byte_fallback and _spaces_spelled(file)):
        raise refuse("spells neither bytes nor spaces in a way that is read")
    table = token_table(
        model.vocab,
        file.added_tokens,
        refuse,
        unknown=model.unk_token,
        bytes_spelled=not bytes_named,
    )
    cut = CutFacts(file.normalizer, file.pre_tokenizer, model.ignore_merges, model.fuse_unk)
    return Vocabulary(
        model="gpt2" if bytes_named else "gemma4",
        tokens=table.tokens,
        token_types=table.types,
        merges=model.merges,
        unknown_id=None if model.unk_token is None else _index(table.tokens, model.unk_token),
        cut=cut,
        add_space_prefix=puts_space(cut),
        flags=table.flags,
        begins_with=_first_token(file, refuse),
    )


def _index(tokens: tuple[str, ...], token: str) -> int | None:
    return tokens.index(token) if token in tokens else None


def _check_model(model: _Model, refuse: Refuse) -> None:
    if len(model.vocab) > VOCABULARY_LIMIT or len(model.merges) > MERGE_LIMIT:
        raise refuse(
            f"has {len(model.vocab)} tokens and {len(model.merges)} merges, at most "
            f"{VOCABULARY_LIMIT} and {MERGE_LIMIT} are read"
        )
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"):
        value = getattr(model, name)
        if value:
            raise refuse(f"has {name} {plain(str(value))!r}, which is not read")


def _check_steps(file: _File, refuse: Refuse) -> None:
    for step in (*normalizer_steps(file.normalizer), *cut_steps(file.pre_tokenizer)):
        if not isinstance(step, Replace | Split):
            continue
        literal, expression = step.pattern.literal, step.pattern.expression
        if (literal is None) == (expression is None) or literal == "":
            raise refuse("has a step with neither or both of a text and a pattern to look for")
        problem = None if expression is None else pattern_problem(expression)
        if problem is not None:
            raise refuse(f"has a pattern that {problem}")
        if isinstance(step, Split) and step.behavior == "Removed" and not step.invert:
            raise refuse("has a step that drops text")


def _spaces_spelled(file: _File) -> bool:
    """Whether a space is spelled as U+2581, as SPM does it, so that it is decoded like that."""
    replaced = (
        (step.pattern.literal, step.content) == _SPACES[::-1]
        for step in normalizer_steps(file.normalizer)
        if isinstance(step, Replace)
    )
    swapped = (
        step.replacement == _SPACES[0]
        for step in cut_steps(file.pre_tokenizer)
        if isinstance(step, Metaspace)
    )
    return any((*replaced, *swapped))


def _first_token(file: _File, refuse: Refuse) -> str | None:
    """The special token that the file puts before a text."""
    try:
        after = msgspec.json.decode(file.post_processor, type=_After | None)
    except (msgspec.DecodeError, RecursionError) as error:
        raise refuse(f"has a post_processor that is not read: {plain(str(error), 200)}") from error
    for one in () if after is None else (after, *after.processors):
        if one.single and one.single[0].special is not None:
            return one.single[0].special.id
    return None
