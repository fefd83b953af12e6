"""Mutated GGUF headers: each must give a typed error or a consistent checkpoint.

    python -m tests.fuzz.gguf_mutants --small 1000000 --real 10000 --seed 1

``--small`` mutates hand-made headers of a few hundred bytes in memory, ``--real`` the headers of
the two real models, whose tensor bytes are a hole of the true size. Prints counts, the worst time
and the most memory; ends with code 1 on any finding. Mutant number N of a seed is always the same:
``--first N --small 1`` tries it again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from math import isfinite, prod
from pathlib import Path
from random import Random
from time import perf_counter, process_time

from engine.checkpoint.gguf.checkpoint import GGUFCheckpoint
from engine.checkpoint.gguf.header import parse_header
from engine.checkpoint.gguf.split import joint_table
from engine.checkpoint.gguf.values import NumberArray, StringArray
from engine.checkpoint.mapped import MappedFile
from engine.checkpoint.open import open_checkpoint
from engine.checkpoint.source import CheckpointSource, MetadataValue, TensorFacts
from engine.errors import CheckpointError
from engine.models import model_spec
from engine.models.spec import DeltaSpec, Linear
from tests.fuzz.mutations import mutate
from tests.fuzz.small_headers import small_images
from tests.helpers.gguf_edit import Image, read_image
from tests.helpers.models import gemma_path, smol_path

MEMORY_LIMIT_KB = 200 << 10
_NOWHERE = Path("mutant.gguf")
_GEMMA_EVERY = 10
_LONGEST_DELETION = 64


@dataclass(slots=True)
class Tally:
    """What a run saw.

    Attributes:
        findings: mutant number and traceback of everything that was no typed error.
        worst: seconds of processor time and number of the slowest mutant.
        memory_kb: how far the most resident memory rose over the start.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[tuple[int, str]] = field(default_factory=list)
    worst: tuple[float, int] = (0.0, -1)
    seconds: float = 0.0
    memory_kb: int = 0

    @property
    def failed(self) -> bool:
        """Whether the run found anything."""
        return bool(self.findings) or self.memory_kb > MEMORY_LIMIT_KB

    def line(self, name: str, seed: int) -> str:
        """One line for a person."""
        counts = ", ".join(f"{count} {word}" for word, count in sorted(self.outcomes.items()))
        return (
            f"{name}: seed {seed}, {self.outcomes.total()} mutants in {self.seconds:.1f} s: "
            f"{counts}; findings {len(self.findings)}; worst {self.worst[0] * 1e3:.2f} ms "
            f"(number {self.worst[1]}); memory +{self.memory_kb / 1024:.1f} MB"
        )


def run_small(count: int, seed: int, first: int = 0) -> Tally:
    """Try ``count`` mutants of the small headers, in memory."""
    images = small_images()
    originals = [image.to_bytes() for image in images]
    for raw in originals:
        examine(_checkpoint(raw))

    def one(number: int, tally: Tally) -> None:
        random = Random(f"small {seed} {number}")
        place = random.randrange(len(images))
        raw = mutate(random, images[place], originals[place])
        judge(lambda: _checkpoint(raw), number, tally)

    return _run(range(first, first + count), one)


def run_real(count: int, seed: int, first: int = 0) -> Tally:
    """Try ``count`` mutants of the real headers, each as a file with its true size."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "mutant.gguf"
        bases = [_RealBase(smol_path(), target), _RealBase(gemma_path(), target)]

        def one(number: int, tally: Tally) -> None:
            base = bases[number % _GEMMA_EVERY == 0]
            random = Random(f"real {seed} {number}")
            path = base.write(mutate(random, base.image, base.header, base.places))
            judge(lambda: open_checkpoint(path), number, tally)

        return _run(range(first, first + count), one)


def examine(source: CheckpointSource) -> None:
    """Assert that an opened checkpoint is consistent, and read all that it offers."""
    with source:
        for value in source.metadata.values():
            _read(value)
        spans = sorted((f.file, f.offset, f.offset + f.size_bytes) for f in source.tensors.values())
        for before, after in pairwise(spans):
            assert before[0] < after[0] or before[2] <= after[1], "tensors overlap"
        for facts in source.tensors.values():
            _examine_tensor(source, facts)
        assert len(source.header_digest) == 64
        _examine_words(source)
        _examine_family(source)


def _examine_tensor(source: CheckpointSource, facts: TensorFacts) -> None:
    """Bytes and, where there are any, one scale and one minimum for every block."""
    assert min(facts.shape) >= 1
    assert len(source.tensor_bytes(facts.name)) == facts.size_bytes > 0
    lead, (rows, columns) = facts.shape[:-2], (1, *facts.shape)[-2:]
    grid = (-(-rows // facts.block[0]), -(-columns // facts.block[1]))
    for part in (facts.scales, facts.minima):
        if part is not None:
            assert part.shape == (*lead, *grid)
            assert len(source.tensor_bytes(part.name)) == part.size_bytes > 0


def _examine_words(source: CheckpointSource) -> None:
    """Parts that a sound file may lack, each with a typed error of its own."""
    assert source.name
    for part in ("architecture", "chat_template", "generation_defaults"):
        try:
            getattr(source, part)
        except CheckpointError:
            continue
    try:
        tokenizer = source.tokenizer
    except CheckpointError:
        return
    count = len(tokenizer.tokens)
    assert len(tokenizer.token_types) == count
    assert len(tokenizer.scores) in (0, count)
    assert all(0 <= i < count for i in tokenizer.end_ids)
    "".join(tokenizer.tokens).encode()


def _examine_family(source: CheckpointSource) -> None:
    """A spec names tensors of the file and numbers that can be computed with, or is refused."""
    try:
        spec = model_spec(source)
    except CheckpointError:
        return
    assert {spec.embedding, spec.head} <= source.tensors.keys()
    assert len(spec.layers) <= len(source.tensors)
    for linear in linears_of(spec):
        assert linear.bias is None or linear.bias in source.tensors
        row_count = prod(source.tensors[linear.weight].shape[:-1])
        for first, count in linear.rows or ():
            assert 0 <= first < first + count <= row_count
    for layer in spec.layers:
        if isinstance(layer.mixer, DeltaSpec):
            held = source.tensors[layer.mixer.convolution]
            assert prod(held.shape) == layer.mixer.channels * layer.mixer.kernel
    for attention in spec.attentions:
        assert isfinite(attention.scale)
        if attention.rope is not None:
            assert all(map(isfinite, attention.rope.frequencies))


def linears_of(part: object) -> Iterator[Linear]:
    """Every product that a spec, or a part of one, names."""
    if isinstance(part, Linear):
        yield part
    elif isinstance(part, tuple):
        for entry in part:
            yield from linears_of(entry)
    elif is_dataclass(part):
        for one in fields(part):
            yield from linears_of(getattr(part, one.name))


def _checkpoint(raw: bytes) -> CheckpointSource:
    part = MappedFile(_NOWHERE, raw, parse_header(raw, _NOWHERE.name))
    assert part.header.steps <= len(raw)
    return GGUFCheckpoint([part], joint_table([part]))


def _read(value: MetadataValue) -> None:
    """Walk over a metadata value, nested ones too."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, StringArray):
        words = tuple(value)
        assert len(words) == len(value)
        "".join(words).encode()
    elif isinstance(value, NumberArray):
        assert len(tuple(value)) == len(value)
    elif isinstance(value, Sequence):
        for element in value:
            _read(element)


def judge(open_mutant: Callable[[], CheckpointSource], number: int, tally: Tally) -> None:
    """Open and examine one mutant; whatever is no typed error is a finding."""
    start = process_time()
    try:
        examine(open_mutant())
        word = "consistent"
    except CheckpointError as error:
        word = error.code
    except Exception:  # noqa: BLE001 - the very thing that is looked for
        word = "findings"
        tally.findings.append((number, traceback.format_exc()))
    seconds = process_time() - start
    tally.outcomes[word] += 1
    tally.worst = max(tally.worst, (seconds, number))


def _run(numbers: range, one: Callable[[int, Tally], None]) -> Tally:
    tally = Tally()
    before = start_peak()
    start = perf_counter()
    for number in numbers:
        one(number, tally)
    tally.seconds = perf_counter() - start
    tally.memory_kb = peak_kb() - before
    return tally


def start_peak() -> int:
    """Forget the process's peak of resident memory and return what is resident now, in KB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory_kb("VmRSS")


def peak_kb() -> int:
    """The most memory that was resident since ``start_peak``, in KB."""
    return _memory_kb("VmHWM")


def _memory_kb(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise LookupError(name)


class _RealBase:
    """The header of a real file, and a file of the true size to write mutants of it into.

    Attributes:
        header: its bytes up to the tensors' data.
        image: the same in pieces, without the tensors' bytes.
        places: offsets of the fields between the long tables of words.
    """

    def __init__(self, path: Path, target: Path) -> None:
        self.image = read_image(path)
        offset = 0
        for place, line in enumerate(self.image.tensors):
            self.image.tensors[place] = replace(line, data=b"", offset=offset)
            offset += len(line.data)
        self.header = self.image.to_bytes()
        self.places = _field_places(self.image)
        self._size = path.stat().st_size
        self._target = target

    def write(self, mutant: bytes) -> Path:
        """Put a mutant in front of a hole that stands for the tensors' bytes.

        Where the header was cut, the file ends there.
        """
        is_cut = len(self.header) - len(mutant) > _LONGEST_DELETION
        size = len(mutant) if is_cut else self._size
        with self._target.open("wb") as stream:
            stream.write(mutant)
            stream.truncate(max(size, len(mutant)))
        return self._target


def _field_places(image: Image) -> list[int]:
    places = list(range(24))
    place = 24
    for key, value in image.keys:
        head = 8 + len(key) + min(len(value), 32)
        places += range(place, place + head)
        place += 8 + len(key) + len(value)
    table = sum(24 + len(line.name) + 8 * len(line.dims) for line in image.tensors)
    return places + list(range(place, place + table))


def main() -> int:
    """Run what the command line asks for; 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--small", type=int, default=0)
    parser.add_argument("--real", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    wish = parser.parse_args()
    failed = False
    for name, count, run in (("small", wish.small, run_small), ("real", wish.real, run_real)):
        if count:
            tally = run(count, wish.seed, wish.first)
            print(tally.line(name, wish.seed), flush=True)
            for number, trace in tally.findings[:5]:
                print(f"number {number}:\n{trace}")
            failed |= tally.failed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
