"""Files that belong together: ``NAME-00001-of-00003.gguf`` and its sisters.

Any part opens the whole set. The first part holds the metadata; ``split.no`` (from 0),
``split.count`` and ``split.tensors.count`` say what a part is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from engine.checkpoint.gguf.checkpoint import GGUFCheckpoint, Part, map_part
from engine.checkpoint.gguf.header import MAGIC, Header
from engine.checkpoint.gguf.table import tensor_table
from engine.checkpoint.labels import file_label
from engine.checkpoint.source import MetadataValue, TensorFacts
from engine.errors import CheckpointError, CheckpointUnreadable

PART_LIMIT = 999
_TOTAL_KEY = "split.tensors.count"
_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf", re.DOTALL)


def open_gguf(path: Path) -> GGUFCheckpoint:
    """Open a GGUF file, and the other parts of its set where it is split.

    Raises:
        CheckpointUnreadable: damaged, cut, parts missing, renamed or joined, or no weights.
        UnsupportedFormat: a tensor is stored in a format that is not decoded.
    """
    with _closed_on_failure() as opened:
        part = map_part(path)
        opened.append(part)
        if not is_whole(part):
            _table(part, 0)
            parts = _all_parts(part, opened)
        else:
            parts = [part]
        return GGUFCheckpoint(parts, joint_table(parts))


def is_whole(part: Part) -> bool:
    """Whether a file is a model by itself, also where it was merged and still says split."""
    if _count(part) <= 1:
        return True
    promised = part.header.metadata.get(_TOTAL_KEY)
    if isinstance(promised, int):
        return promised == len(part.header.entries)
    return _has_every_block(part.header)


def part_number(path: Path) -> tuple[str, int, int] | None:
    """Stem, index from 0 and count out of a part's file name; None for other names."""
    match = _NAME.fullmatch(path.name)
    return match and (match["stem"], int(match["number"]) - 1, int(match["count"]))


@contextmanager
def _closed_on_failure() -> Iterator[list[Part]]:
    """Parts whose mappings go where opening fails."""
    opened: list[Part] = []
    try:
        yield opened
    except CheckpointError:
        for part in opened:
            part.close()
        raise


def joint_table(parts: list[Part]) -> dict[str, TensorFacts]:
    """One checked table over all parts of a set, in order."""
    joint: dict[str, TensorFacts] = {}
    for index, part in enumerate(parts):
        for facts in _table(part, index):
            if facts.name in joint:
                raise _refuse(part.path, f"repeats the tensor {facts.name!r} of another part")
            joint[facts.name] = facts
    if not joint:
        raise _refuse(parts[0].path, "the file has a vocabulary but no weights")
    return joint


def _table(part: Part, index: int) -> list[TensorFacts]:
    """The part's checked tensors; nothing but padding may follow that looks like a model."""
    table = tensor_table(part.header, file_label(part.path), part.size_bytes, index)
    end = max((facts.offset + facts.size_bytes for facts in table), default=part.header.end)
    other = part.data.find(MAGIC, end, end + part.header.alignment + len(MAGIC))
    if other >= 0:
        raise _refuse(
            part.path,
            f"another GGUF file begins at byte {other}, so files were joined byte after byte; "
            "keep the parts as separate files, any of them opens the model",
        )
    return table


def _all_parts(own: Part, opened: list[Part]) -> list[Part]:
    """Map the sisters of ``own``; every mapping is also put into ``opened``."""
    number, count = _number(own), _count(own)
    if not 0 <= number < count <= PART_LIMIT:
        raise _refuse(own.path, f"says it is part {number + 1} of {count}, which cannot be")
    named = part_number(own.path)
    if named is None or named[1:] != (number, count):
        raise _refuse(
            own.path,
            f"this is part {number + 1} of {count} of a split model, but its name does not end "
            f"in {_suffix(number, count)}; give every part its own name back",
        )
    found = [own]
    for index in range(count):
        if index != number:
            part = _sister(own.path.with_name(named[0] + _suffix(index, count)), index, count)
            opened.append(part)
            found.insert(index, part)
            _check_place(part, index, count)
    promised = found[0].header.metadata.get(_TOTAL_KEY)
    total = sum(len(part.header.entries) for part in found)
    if isinstance(promised, int) and promised != total:
        raise _refuse(
            own.path, f"the set promises {promised} tensors, but its {count} parts hold {total}"
        )
    return found


def _sister(path: Path, index: int, count: int) -> Part:
    if not path.is_file():
        raise _refuse(
            path,
            f"part {index + 1} of {count} is missing; put it beside the others under this name",
        )
    return map_part(path)


def _check_place(part: Part, index: int, count: int) -> None:
    if (_number(part), _count(part)) != (index, count):
        raise _refuse(
            part.path,
            f"its name says part {index + 1} of {count}, but the file says "
            f"part {_number(part) + 1} of {_count(part)}; give every part its own name back",
        )


def _suffix(index: int, count: int) -> str:
    return f"-{index + 1:05}-of-{count:05}.gguf"


def _count(part: Part) -> int:
    return _whole(part.header.metadata, "split.count", 1)


def _number(part: Part) -> int:
    return _whole(part.header.metadata, "split.no", 0)


def _whole(metadata: Mapping[str, MetadataValue], key: str, default: int) -> int:
    value = metadata.get(key, default)
    return int(value) if isinstance(value, int) else default


def _has_every_block(header: Header) -> bool:
    """Whether the first and the last tensors of a model are all there."""
    family = header.metadata.get("general.architecture")
    blocks = _whole(header.metadata, f"{family}.block_count", 0)
    names = {entry.name for entry in header.entries}
    ends = {"token_embd.weight", "output_norm.weight"}
    return ends <= names and any(name.startswith(f"blk.{blocks - 1}.") for name in names)


def _refuse(path: Path, sentence: str) -> CheckpointUnreadable:
    label = file_label(path)
    return CheckpointUnreadable(f"{label}: {sentence}", file=label)
