"""Tokenizers for tests: the two real ones, built once a run, and small ones made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import TokenizerFacts
from engine.helpers.records import Outcome, Rendering, RenderRequest
from engine.helpers.template_child import Desk
from engine.text.tokenizer import Tokenizer
from engine.text.vocabulary.pieces import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, byte_table
from tests.helpers.models import gemma_path, smol_path


@cache
def smol_facts() -> TokenizerFacts:
    with open_checkpoint(smol_path()) as checkpoint:
        return checkpoint.tokenizer


@cache
def smol_template() -> str:
    with open_checkpoint(smol_path()) as checkpoint:
        source = checkpoint.chat_template
    assert source is not None
    return source


@cache
def smol_tokenizer() -> Tokenizer:
    return Tokenizer(smol_facts())


@cache
def gemma_facts() -> TokenizerFacts:
    with open_checkpoint(gemma_path()) as checkpoint:
        return checkpoint.tokenizer


@cache
def gemma_tokenizer() -> Tokenizer:
    return Tokenizer(gemma_facts())


def spm_facts(
    pieces: Mapping[str, float],
    *,
    user_defined: Sequence[str] = (),
    add_space_prefix: bool = True,
) -> TokenizerFacts:
    """An SPM vocabulary: <unk> <s> </s>, 256 bytes, user-defined tokens, then the pieces."""
    table = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
    table += [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
    table += [(token, USER_DEFINED, -1000.0) for token in user_defined]
    table += [(token, NORMAL, score) for token, score in pieces.items()]
    return TokenizerFacts(
        model="llama",
        pre=None,
        tokens=tuple(token for token, _, _ in table),
        token_types=tuple(kind for _, kind, _ in table),
        scores=tuple(score for _, _, score in table),
        merges=(),
        bos_id=1,
        eos_id=2,
        unknown_id=0,
        padding_id=None,
        end_ids=(2,),
        add_bos=True,
        add_eos=False,
        add_space_prefix=add_space_prefix,
    )


def byte_facts(
    *,
    control: Sequence[str] = ("<s>", "</s>"),
    user_defined: Sequence[str] = (),
    merges: Sequence[str] = (),
    pre: str | None = "gpt-2",
    add_bos: bool = False,
) -> TokenizerFacts:
    """A byte-level vocabulary: control tokens (BOS, EOS first), user-defined ones, all bytes."""
    tokens = [*control, *user_defined, *byte_table()]
    tokens += [merge.replace(" ", "", 1) for merge in merges]
    types = [CONTROL] * len(control) + [USER_DEFINED] * len(user_defined)
    return TokenizerFacts(
        model="gpt2",
        pre=pre,
        tokens=tuple(tokens),
        token_types=tuple(types + [NORMAL] * (len(tokens) - len(types))),
        scores=(),
        merges=tuple(merges),
        bos_id=0,
        eos_id=1,
        unknown_id=None,
        padding_id=None,
        end_ids=(1,),
        add_bos=add_bos,
        add_eos=False,
        add_space_prefix=False,
    )


class DeskRenderer:
    """Renders in this process what the limited child renders in its own, without its start."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._desk = Desk()

    def start(self) -> None:
        """Nothing to do."""

    def render(self, renderings: Sequence[Rendering], date: str | None) -> tuple[Outcome, ...]:
        return self._desk.render(
            RenderRequest(
                template=self.source,
                date=date,
                output_limit=1 << 20,
                renderings=tuple(renderings),
            )
        )

    def close(self) -> None:
        """Nothing to give back."""
