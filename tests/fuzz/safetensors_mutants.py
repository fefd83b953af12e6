"""Mutated published checkpoints: each must give a typed error or a consistent checkpoint.

    python -m tests.fuzz.safetensors_mutants --count 200000 --seed 1

A mutant is a folder of a few kilobytes: a small model as published, as MLX packs it or in eight-bit
floats, in one file or two with an index, with one of its headers, its index, its config or another
small file damaged in its bytes or in its fields. Prints counts, the worst time and the most memory;
ends with code 1 on any finding. Mutant number N of a seed is always the same: ``--first N --count
1`` tries it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any

from engine.checkpoint.open import open_checkpoint
from tests.fuzz.gguf_mutants import Tally, examine, judge, peak_kb, start_peak
from tests.fuzz.mutations import EXTREMES, damaged
from tests.helpers.safetensors_edit import fp8, mlx, one_file, two_files
from tests.helpers.tiny_safetensors import file_bytes, taken_apart

Json = Any
_STRUCTURAL_SHARE = 0.6
_SMALL_FILES = {
    "generation_config.json": {"temperature": 0.7, "top_k": 20, "suppress_tokens": [1, 2]},
    "tokenizer_config.json": {"chat_template": [{"name": "default", "template": "{{ x }}"}]},
}
_VALUES: tuple[Json, ...] = (
    *(
        None,
        True,
        False,
        "",
        "F32",
        "U32",
        "F8_E4M3",
        "llama",
        "gemma3",
        "qwen3_5",
        "../x",
        "\ud800",
    ),
    *([], {}, [[]], [0], [1, 2], [-1], [1 << 62, 4], {"a": 1}, {"bits": 4, "group_size": 64}),
    *(0, -1, 1, 2, 3, 4, 24, 128, 0.5, -0.0, 1e-300, 1e308, float("inf"), float("nan"), 10**25),
)


class Mutants:
    """Sound folders, one of which is damaged at a time; used from one thread."""

    def __init__(self, root: Path) -> None:
        self._folders = [
            make(root / make.__name__).path for make in (one_file, two_files, mlx, fp8)
        ]
        for folder in self._folders:
            for name, words in _SMALL_FILES.items():
                (folder / name).write_text(json.dumps(words))
            examine(open_checkpoint(folder))
        self._sound = {
            file: file.read_bytes() for folder in self._folders for file in folder.iterdir()
        }
        self._changed: set[Path] = set()

    def write(self, random: Random) -> Path:
        """One mutant as a folder; the one before is made sound again."""
        for file in self._changed:
            file.write_bytes(self._sound[file])
        folder = random.choice(self._folders)
        files = [file for file in self._sound if file.parent == folder]
        self._changed = set(random.sample(files, random.choice((1, 1, 1, 2))))
        for file in sorted(self._changed):
            file.write_bytes(mutant(random, self._sound[file], file.suffix == ".safetensors"))
        return folder


def mutant(random: Random, raw: bytes, has_header: bool) -> bytes:
    """A file changed in its bytes or in the fields of its JSON."""
    if random.random() > _STRUCTURAL_SHARE:
        text = int.from_bytes(raw[:8], "little") if has_header else len(raw)
        return damaged(random, raw, range(min(len(raw), text + 8)))
    if not has_header:
        return _text(random, json.loads(raw))
    header, data = taken_apart(raw)
    return file_bytes(_text(random, header), data)


def _text(random: Random, parsed: Json) -> bytes:
    parent, key = _somewhere(random, parsed)
    _change(random, parent, key)
    return json.dumps(parsed).encode()


def _somewhere(random: Random, parsed: Json) -> tuple[Json, Json]:
    """Any field: what holds it, and its key or index there."""
    parent: Json = {"": parsed}
    key: Json = ""
    while True:
        value = parent[key]
        if not isinstance(value, dict | list) or not value or (key and random.random() < 0.3):
            return parent, key
        keys = list(value) if isinstance(value, dict) else range(len(value))
        parent, key = value, random.choice(keys)


def _change(random: Random, parent: Json, key: Json) -> None:
    value = parent[key]
    kinds: list[Callable[[], object]] = [
        lambda: parent.__setitem__(key, random.choice(_VALUES)),
        lambda: parent.pop(key),
    ]
    if isinstance(value, int | float) and not isinstance(value, bool):
        near = (value + 1, value - 1, value * 2, value / 3, -value)
        kinds += 2 * [lambda: parent.__setitem__(key, random.choice((*near, *EXTREMES)))]
    if isinstance(value, str):
        kinds.append(lambda: parent.__setitem__(key, value[: random.randrange(len(value) + 1)]))
    if isinstance(parent, dict):
        kinds.append(lambda: parent.__setitem__(key, random.choice(list(parent.values()))))
        kinds.append(lambda: parent.__setitem__(random.choice(list(parent)) + "x", parent.pop(key)))
    else:
        kinds.append(lambda: parent.insert(key, value))
        kinds.append(parent.reverse)
    random.choice(kinds)()


def run(count: int, seed: int, first: int = 0) -> Tally:
    """Try ``count`` mutants."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as root:
        mutants = Mutants(Path(root))
        before, start = start_peak(), perf_counter()
        for number in range(first, first + count):
            folder = mutants.write(Random(f"published {seed} {number}"))
            judge(partial(open_checkpoint, folder), number, tally)
        tally.seconds = perf_counter() - start
        tally.memory_kb = peak_kb() - before
        if root in Path("/proc/self/maps").read_text():
            tally.findings.append((-1, "a mutant stayed mapped"))
    return tally


def main() -> int:
    """Run what the command line asks for; 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    wish = parser.parse_args()
    tally = run(wish.count, wish.seed, wish.first)
    print(tally.line("published", wish.seed), flush=True)
    for number, trace in tally.findings[:5]:
        print(f"number {number}:\n{trace}")
    return int(tally.failed)


if __name__ == "__main__":
    sys.exit(main())
