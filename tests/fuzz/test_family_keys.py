"""A family's reader over keys that say anything: a spec or a typed error, and little memory."""

from __future__ import annotations

import tracemalloc
from random import Random

from engine.checkpoint.source import Dialect, MetadataValue
from engine.errors import CheckpointError
from engine.models import model_spec
from tests.helpers import qwen_sources as qwen

COUNT = 3_000
MEMORY_LIMIT = 8 << 20
LONGEST_SENTENCE = 300
NAN, INFINITY = float("nan"), float("inf")
NUMBERS: tuple[MetadataValue, ...] = (0, -1, 1, 2, 3, 1 << 31, 1 << 40, 1 << 70, True, False)
FLOATS: tuple[MetadataValue, ...] = (1.5, 0.0, -2.0, 1e-320, 1e308, NAN, INFINITY)
KINDS = ("full_attention", "linear_attention", "full_attention")
LISTS: tuple[MetadataValue, ...] = (
    *((), ("x",), ((1,),), (1, 2, 3), (-1,), (0, 6, 0), (1 << 70,) * 3),
    *((True, False, True), KINDS),
)
EXTREMES = (*NUMBERS, *FLOATS, *LISTS, "x", "", "yarn", "linear")
RARE = {
    Dialect.GGUF: (
        *("nextn_predict_layers", "rope.scaling.type", "rope.scaling.factor", "expert_gating_func"),
        *("rope.scaling.yarn_beta_fast", "expert_weights_norm", "expert_weights_scale"),
        *("attention.scale", "dense_layers", "layer_types", "ssm.value_length", "activation"),
    ),
    Dialect.PUBLISHED: (
        *("rope_scaling.type", "rope_scaling.factor", "rope_parameters.factor", "hidden_act"),
        *("rope_parameters.original_max_position_embeddings", "rope_parameters.beta_fast"),
        *("mlp_only_layers", "decoder_sparse_step", "norm_topk_prob", "full_attention_interval"),
        *("text_config.num_hidden_layers", "rope_parameters.truncate"),
    ),
}


def test_any_keys_give_a_spec_or_a_typed_error_and_little_memory() -> None:
    random = Random(11)
    sources = [qwen.source(family, dialect) for family in qwen.FAMILIES for dialect in RARE]
    originals = [source.metadata for source in sources]
    read = 0
    tracemalloc.start()
    try:
        for number in range(COUNT):
            source = sources[number % len(sources)]
            source.metadata = _changed(
                random, originals[number % len(sources)], source.dialect, source.architecture
            )
            try:
                model_spec(source)
            except CheckpointError as error:
                assert 0 < len(error.sentence) < LONGEST_SENTENCE
            else:
                read += 1
        assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT
    finally:
        tracemalloc.stop()
    assert 0 < read < COUNT


def _changed(
    random: Random, keys: dict[str, MetadataValue], dialect: Dialect, architecture: str
) -> dict[str, MetadataValue]:
    before = f"{architecture}." if dialect is Dialect.GGUF else ""
    names = [*keys, *(before + name for name in RARE[dialect])]
    found = dict(keys)
    for _ in range(random.choice((1, 1, 2, 3))):
        name = random.choice(names)
        stated = found.get(name)
        if random.random() < 0.1:
            found.pop(name, None)
        elif type(stated) is int and random.random() < 0.3:
            found[name] = stated + random.choice((-1, 1, stated))
        else:
            found[name] = random.choice(EXTREMES)
    return found
