"""Pre-tokenizer rules of byte-level BPE: how text is cut into words before merges run.

A checkpoint names its rule (``tokenizer.ggml.pre``); many names mean the same rule. The patterns
are those of the models' own published tokenizer files. Pure: a table and one look-up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tokenizers import Regex, normalizers, pre_tokenizers

_CONTRACTION: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_GPT2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_TAIL: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASED: Final = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%(tail)s"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%(tail)s"
    r"|\p{N}%(digits)s| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# DeepSeek names its letters one by one: the cased ones of an older Unicode, less some blocks.
_DEEPSEEK_LETTERS: Final = (
    r"\p{Lu}\p{Ll}\p{Lt}&&[^\x{560}-\x{588}\x{10c7}-\x{10ff}\x{1c80}-\x{1c8a}\x{2d00}-\x{2d2d}"
    r"\x{a790}-\x{a7fa}\x{ab30}-\x{ab68}\x{10570}-\x{105bc}\x{16e40}-\x{16e7f}\x{1d400}-\x{1d7cb}"
    r"\x{1df00}-\x{1df2a}\x{10d50}-\x{10d85}]"
)
_DEEPSEEK_MARKS: Final = (
    r"!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}"
)
_EAST_ASIAN: Final = r"[\x{800}-\x{9fa5}\x{ac00}-\x{d7ff}]+"


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to cut text.

    Attributes:
        patterns: applied in turn, each match a piece of its own; empty means GPT-2's own cut.
        digits_apart: every digit is a piece of its own before the rest applies.
        ignore_merges: a piece that is a whole token is that token, whatever merges say.
        composed: text is brought to Unicode NFC first.
    """

    patterns: tuple[str, ...] = ()
    digits_apart: bool = False
    ignore_merges: bool = False
    composed: bool = False

    def normalizer(self) -> normalizers.Normalizer | None:
        """What text goes through before it is cut."""
        return normalizers.NFC() if self.composed else None

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        """The cut as a ``tokenizers`` object, byte-level at its end."""
        parts: list[pre_tokenizers.PreTokenizer] = []
        if self.digits_apart:
            parts.append(pre_tokenizers.Digits(individual_digits=True))
        parts += [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in self.patterns]
        parts.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not self.patterns))
        return pre_tokenizers.Sequence(parts)


def _llama3(digits: str) -> str:
    return _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + digits + "|" + _TAIL


_DEEPSEEK3: Final = (
    r"\p{N}{1,3}",
    r"[\x{4e00}-\x{9fa5}\x{3040}-\x{30ff}]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
    r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)
_BAILING: Final = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
_SEED: Final = (
    _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN35: Final = (
    _CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PLAIN: Final = Rule()

_TABLE: Final[tuple[tuple[Rule, str], ...]] = (
    (
        PLAIN,
        "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert"
        " exaone4 mpt olmo jais trillion granite-docling",
    ),
    (
        Rule(digits_apart=True),
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
    ),
    (
        Rule((_llama3("{1,3}"),), ignore_merges=True),
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano glm4 glm5",
    ),
    (Rule((_llama3("{1,3}"),)), "smaug-bpe dbrx chatglm-bpe"),
    (Rule((_llama3(""),), composed=True), "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez"),
    (Rule((_llama3(""),)), "stablelm2 hunyuan solar-open grok-2"),
    (Rule((_QWEN35,), composed=True), "qwen35"),
    (
        Rule(
            (
                "[\r\n]",
                rf"\s?[{_DEEPSEEK_LETTERS}]+",
                rf"\s?[{_DEEPSEEK_MARKS}]+",
                r"\s+$",
                _EAST_ASIAN,
                r"\p{N}+",
            )
        ),
        "deepseek-llm",
    ),
    (Rule(("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}")), "deepseek-coder"),
    (Rule(_DEEPSEEK3), "deepseek-v3 hunyuan-dense joyai-llm hy_v4"),
    (Rule((_CASED % {"tail": "", "digits": ""},), ignore_merges=True), "tekken"),
    (
        Rule((_CASED % {"tail": _CONTRACTION + "?", "digits": "{1,3}"},)),
        "gpt-4o llama4 kanana2 talkie minimax-m2",
    ),
    (
        Rule((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
        "falcon",
    ),
    (Rule((_BAILING,)), "bailingmoe bailingmoe2 llada-moe"),
    (Rule((_SEED,)), "seed-coder"),
)


def find_rule(name: str | None) -> tuple[Rule, str | None]:
    """The rule of that name, and a note where the name is missing or unknown."""
    for rule, names in _TABLE:
        if name in names.split():
            return rule, None
    what = f"Tokenizer rule {name!r} is unknown" if name else "The file names no tokenizer rule"
    return PLAIN, f"{what}; GPT-2's rule is used, so text may be read wrongly."
