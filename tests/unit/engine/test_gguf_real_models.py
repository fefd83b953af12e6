"""The two small real models read as the ``gguf`` package reads them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import pytest

from engine.checkpoint.gguf.checkpoint import map_part
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import MetadataValue
from tests.helpers.gguf_edit import read_image
from tests.helpers.gguf_oracle import content, recorded
from tests.helpers.models import gemma_path, smol_path

MODELS = pytest.mark.parametrize("model", [smol_path, gemma_path], ids=["smol", "gemma"])
Model = Callable[[], Path]


def _plain(value: MetadataValue) -> object:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(element) for element in value]
    return value


@MODELS
def test_metadata_and_tensor_table_equal_what_the_gguf_package_reads(model: Model) -> None:
    with open_checkpoint(model()) as source:
        found = content(
            {key: _plain(value) for key, value in source.metadata.items()},
            (
                (facts.name, facts.shape, facts.format, facts.offset, facts.size_bytes)
                for facts in source.tensors.values()
            ),
        )
    assert found == recorded(model())


@MODELS
def test_a_vocabulary_of_262144_words_opens_within_half_a_second(model: Model) -> None:
    start = perf_counter()
    with open_checkpoint(model()):
        seconds = perf_counter() - start
    assert seconds < 0.5


@MODELS
def test_a_parse_takes_no_more_steps_than_the_header_has_bytes(model: Model) -> None:
    """Counted: one step a value, and no value is smaller than a byte."""
    part = map_part(model())
    assert len(part.header.entries) < part.header.steps <= part.header.end
    part.close()


def test_tensor_bytes_are_a_read_only_view_of_the_file() -> None:
    image = {line.name.decode(): line.data for line in read_image(smol_path()).tensors}
    with open_checkpoint(smol_path()) as source:
        for name in ("token_embd.weight", "blk.29.ffn_down.weight", "output_norm.weight"):
            view = source.tensor_bytes(name)
            assert view.readonly
            assert view == image[name][: source.tensors[name].size_bytes]
            view.release()


def test_a_view_that_outlives_close_can_still_be_read() -> None:
    source = open_checkpoint(smol_path())
    view = source.tensor_bytes("output_norm.weight")
    wanted = bytes(view)
    source.close()
    source.close()
    assert bytes(view) == wanted


def test_smol_ends_a_turn_at_its_two_control_tokens() -> None:
    with open_checkpoint(smol_path()) as source:
        words = source.tokenizer
    assert (words.model, words.pre) == ("gpt2", "smollm")
    assert words.end_ids == (0, 2)
    assert [words.tokens[i] for i in words.end_ids] == ["<|endoftext|>", "<|im_end|>"]
    assert (words.bos_id, words.eos_id, words.unknown_id, words.padding_id) == (1, 2, 0, 2)
    assert (words.add_bos, words.add_eos, words.add_space_prefix) == (False, False, False)
    assert (len(words.tokens), len(words.merges), len(words.scores)) == (49_152, 48_900, 0)


def test_gemma_ends_a_turn_at_end_of_turn_and_not_at_the_html_tag() -> None:
    with open_checkpoint(gemma_path()) as source:
        words = source.tokenizer
        assert source.chat_template is None
    assert words.end_ids == (1, 106)
    assert words.tokens[212] == "</s>"
    assert (words.bos_id, words.add_bos, words.add_space_prefix) == (2, True, False)
    assert (len(words.tokens), len(words.merges), len(words.scores)) == (262_144, 0, 262_144)


def test_two_checkpoints_have_two_digests_and_one_has_always_the_same() -> None:
    digests = []
    for path in (smol_path(), gemma_path(), smol_path()):
        with open_checkpoint(path) as source:
            digests.append(source.header_digest)
    assert digests[0] == digests[2] != digests[1]


def test_reading_a_header_loads_no_torch_and_no_numpy() -> None:
    code = (
        "import sys; from pathlib import Path; from engine.loading.inspection import "
        "inspect_checkpoint; assert inspect_checkpoint(sys.argv[1]).problem is None; "
        "assert not {'torch', 'numpy', 'gguf'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", code, str(smol_path())]
    subprocess.run(command, check=True, timeout=30)
