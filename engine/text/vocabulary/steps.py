"""What text goes through before merges run, as ``tokenizers`` objects.

A published file says it itself (``CutFacts``); a GGUF file names a rule. Where a space is put
before a text, text that follows other text goes through steps of its own. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Engine

from engine.checkpoint.source import TokenizerFacts
from engine.checkpoint.vocabulary import cuts
from engine.text.vocabulary.rules import Rule

_BEHAVIORS: Final = {
    "Removed": "removed",
    "Isolated": "isolated",
    "MergedWithPrevious": "merged_with_previous",
    "MergedWithNext": "merged_with_next",
    "Contiguous": "contiguous",
}
_FORMS: Final[dict[type, type[normalizers.Normalizer]]] = {
    cuts.Nfc: normalizers.NFC,
    cuts.Nfd: normalizers.NFD,
    cuts.Nfkc: normalizers.NFKC,
    cuts.Nfkd: normalizers.NFKD,
}


@dataclass(frozen=True, slots=True)
class Steps:
    """What is done to one text."""

    normalizer: normalizers.Normalizer | None = None
    pre_tokenizer: pre_tokenizers.PreTokenizer | None = None

    def apply(self, engine: Engine) -> None:
        """Make them the engine's."""
        engine.normalizer = self.normalizer
        engine.pre_tokenizer = self.pre_tokenizer


@dataclass(frozen=True, slots=True)
class StepPair:
    """Steps of a text that begins afresh, and of one that follows other text.

    Attributes:
        once: only a prompt's very first text begins afresh, not each one after a marker.
    """

    fresh: Steps
    continued: Steps
    once: bool = False


def rule_steps(rule: Rule) -> StepPair:
    """Those of a rule's name; a space is never put before."""
    steps = Steps(rule.normalizer(), rule.pre_tokenizer())
    return StepPair(steps, steps)


def space_steps(facts: TokenizerFacts) -> StepPair:
    """SPM's spelling of spaces, with one more before a text where the file wants it."""
    continued = Steps(normalizers.Replace(" ", "\u2581"))
    if not facts.add_space_prefix:
        return StepPair(continued, continued)
    prefixed = normalizers.Sequence([normalizers.Prepend("\u2581"), continued.normalizer])
    return StepPair(Steps(prefixed), continued)


def published_steps(cut: cuts.CutFacts) -> StepPair:
    """Those that the file says itself."""
    fresh = Steps(_normalizer(cut.normalizer), _pre_tokenizer(cut.pre_tokenizer))
    if not cuts.puts_space(cut):
        return StepPair(fresh, fresh)
    after = cuts.continued(cut)
    continued = Steps(_normalizer(after.normalizer), _pre_tokenizer(after.pre_tokenizer))
    once = any(
        isinstance(step, cuts.Metaspace) and step.prepend_scheme == "first"
        for step in cuts.cut_steps(cut.pre_tokenizer)
    )
    return StepPair(fresh, continued, once)


def _normalizer(step: cuts.Normalizer | None) -> normalizers.Normalizer | None:
    made = [_one_normalizer(each) for each in cuts.normalizer_steps(step)]
    return normalizers.Sequence(made) if made else None


def _one_normalizer(step: cuts.Normalizer) -> normalizers.Normalizer:
    match step:
        case cuts.Prepend():
            return normalizers.Prepend(step.prepend)
        case cuts.Replace():
            return normalizers.Replace(_pattern(step.pattern), step.content)
        case cuts.NormalizerSequence():
            return normalizers.Sequence([_one_normalizer(each) for each in step.normalizers])
        case _:
            return _FORMS[type(step)]()


def _pre_tokenizer(step: cuts.PreTokenizer | None) -> pre_tokenizers.PreTokenizer | None:
    made = [_one_cut(each) for each in cuts.cut_steps(step)]
    return pre_tokenizers.Sequence(made) if made else None


def _one_cut(step: cuts.PreTokenizer) -> pre_tokenizers.PreTokenizer:
    match step:
        case cuts.Split():
            behavior = _BEHAVIORS[step.behavior]
            return pre_tokenizers.Split(_pattern(step.pattern), behavior, step.invert)
        case cuts.ByteLevel():
            return pre_tokenizers.ByteLevel(step.add_prefix_space, use_regex=step.use_regex)
        case cuts.Digits():
            return pre_tokenizers.Digits(step.individual_digits)
        case cuts.Punctuation():
            return pre_tokenizers.Punctuation(_BEHAVIORS[step.behavior])
        case cuts.Metaspace():
            return pre_tokenizers.Metaspace(step.replacement, step.prepend_scheme, step.split)
        case cuts.CutSequence():
            return pre_tokenizers.Sequence([_one_cut(each) for each in step.pretokenizers])


def _pattern(pattern: cuts.Pattern) -> str | Regex:
    return pattern.literal or Regex(pattern.expression or "")
