"""What a published checkpoint says beside its numbers: its template, recommended sampling, name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from engine.checkpoint.labels import plain
from engine.checkpoint.published.config import (
    has_file,
    read_object,
    read_text,
)
from engine.checkpoint.published.json_text import Json, JsonLimits, json_refusal, kind_of
from engine.checkpoint.source import GenerationDefaults, MetadataValue

TEMPLATE_LIMIT = 1 << 20
TEMPLATE = "chat_template.jinja"
TEMPLATE_OBJECT = "chat_template.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
WORDS_LIMITS = JsonLimits(size_bytes=64 << 20, values=4_000_000)
_NAME_LIMIT = 120
_IDS_LIMIT = 1 << 20


def chat_template(folder: Path) -> str | None:
    """The Jinja source, of a file of its own or of the tokenizer's config; None for a base model.

    Of several named ones it is "default", else the first.

    Raises:
        CheckpointUnreadable: the file that has it is damaged, or it is too long.
    """
    if has_file(folder, TEMPLATE):
        raw = read_text(folder, TEMPLATE, 4 * TEMPLATE_LIMIT)
        return _checked(raw.decode("utf-8", "replace"), TEMPLATE)
    for name in (TEMPLATE_OBJECT, TOKENIZER_CONFIG):
        if has_file(folder, name):
            found = read_object(folder, name, WORDS_LIMITS).get("chat_template")
            if found is not None:
                return _checked(_chosen(found, name), name)
    return None


def generation_defaults(values: Mapping[str, MetadataValue], vocabulary: int) -> GenerationDefaults:
    """Recommended sampling of a flattened ``generation_config.json``.

    ``do_sample: false``, where it is written, recommends the likeliest token: temperature 0 and
    nothing else. A temperature without the word is a recommendation like any other. Values that
    make no sense recommend nothing, and ids past the vocabulary are dropped.
    """
    suppressed = _ids(values.get("suppress_tokens"), vocabulary)
    if values.get("do_sample") is False:
        return GenerationDefaults(temperature=0.0, suppressed_ids=suppressed)
    top_k = _number(values, "top_k", float(_IDS_LIMIT))
    return GenerationDefaults(
        temperature=_number(values, "temperature", 100.0),
        top_k=None if top_k is None else int(top_k),
        top_p=_number(values, "top_p", 1.0),
        min_p=_number(values, "min_p", 1.0),
        suppressed_ids=suppressed,
    )


def checkpoint_name(folder: Path, file: Path | None) -> str:
    """What to call the model: the file that was asked for, where its name says anything.

    Files of every model are called "model"; then its folder counts. A folder of the hub's cache is
    called by a number; the repository's name is further up.
    """
    if file is not None and not file.name.startswith("model"):
        return plain(file.stem, _NAME_LIMIT)
    root = folder.resolve()
    if root.parent.name == "snapshots":
        return plain(root.parents[1].name.rpartition("--")[2], _NAME_LIMIT)
    return plain(root.name or "model", _NAME_LIMIT)


def _chosen(found: Json, label: str) -> Json:
    if not isinstance(found, list):
        return found
    named: dict[Json, Json] = {}
    for each in found:
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            named.setdefault(str(each["name"]), each.get("template"))
    if not named:
        raise json_refusal(label, "has a list of chat templates without a named one")
    return named.get("default", next(iter(named.values())))


def _checked(template: Json, label: str) -> str | None:
    if not isinstance(template, str):
        raise json_refusal(label, f"has {kind_of(template)} as chat template; wanted a text")
    if len(template) > TEMPLATE_LIMIT:
        raise json_refusal(
            label,
            f"has a chat template of {len(template)} characters; at most {TEMPLATE_LIMIT} are read",
        )
    return template or None


def _number(values: Mapping[str, MetadataValue], key: str, most: float) -> float | None:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None


def _ids(found: MetadataValue | None, vocabulary: int) -> tuple[int, ...]:
    if isinstance(found, str) or not isinstance(found, Sequence):
        return ()
    return tuple(
        each
        for each in found
        if isinstance(each, int) and not isinstance(each, bool) and 0 <= each < vocabulary
    )
