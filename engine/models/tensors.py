"""The checkpoint's tensors by name, each checked before a spec names it.

Keeps account of what was asked for, so that a tensor no one has a place for is told instead of
being left out in silence. No torch here.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.checkpoint.source import CheckpointSource
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models.spec import Linear, Norm

OTHER_PARTS = ("v.", "mm.", "a.")
DERIVED = (".attn_rot_embd", ".rotary_emb.inv_freq")


class TensorNames:
    """Tensors of one checkpoint while its spec is built; used from one thread, then dropped."""

    def __init__(self, source: CheckpointSource) -> None:
        self._tensors = source.tensors
        self._file = source.files[0].name
        self._family = source.architecture
        self._asked: set[str] = set()

    def __len__(self) -> int:
        return len(self._tensors)

    def has(self, name: str) -> bool:
        """Whether the checkpoint has a tensor of this name."""
        return name in self._tensors

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """The tensor's shape, slowest first, after a check of its number of dimensions."""
        facts = self._tensors.get(name)
        if facts is None:
            sentence = f"{self._file} has no tensor {name}, which the {self._family} family needs."
            raise CheckpointUnreadable(sentence, tensor=name)
        if len(facts.shape) != dimensions:
            raise self._misshapen(name, f"{dimensions} dimensions")
        self._asked.add(name)
        return facts.shape

    def checked(self, name: str, shape: tuple[int, ...]) -> str:
        """The name again, after the tensor was found to have exactly ``shape``."""
        if self.shape(name, len(shape)) != shape:
            raise self._misshapen(name, _shown(shape))
        return name

    def linear(self, stem: str, out_width: int, in_width: int) -> Linear:
        """``stem.weight`` of (out, in), with ``stem.bias`` where the file has one."""
        weight = self.checked(f"{stem}.weight", (out_width, in_width))
        bias = f"{stem}.bias"
        return Linear(weight, self.checked(bias, (out_width,)) if self.has(bias) else None)

    def norm(self, stem: str, width: int, eps: float) -> Norm:
        """``stem.weight`` of (width,)."""
        return Norm(self.checked(f"{stem}.weight", (width,)), eps)

    def leftovers(self) -> tuple[str, ...]:
        """Notes about tensors that belong to other parts of a model, such as its vision tower.

        Raises:
            UnsupportedFamily: a tensor was never asked for and is of no other part; leaving it
                out would compute another model than the file holds.
        """
        rest = [name for name in self._tensors if name not in self._asked]
        strange = [name for name in rest if not name.startswith(OTHER_PARTS) and not _derived(name)]
        if strange:
            raise UnsupportedFamily(
                f"{self._file} has a tensor {strange[0]} that the {self._family} family has no "
                f"place for ({len(strange)} such tensors).",
                tensor=strange[0],
                count=len(strange),
            )
        others = sum(name.startswith(OTHER_PARTS) for name in rest)
        if not others:
            return ()
        return (f"{others} tensors of the file belong to its picture or sound part; not used.",)

    def _misshapen(self, name: str, wanted: str) -> CheckpointUnreadable:
        found = _shown(self._tensors[name].shape)
        sentence = f"{self._file}: tensor {name} has shape {found}; wanted {wanted}."
        return CheckpointUnreadable(sentence, tensor=name, found=found, wanted=wanted)


def _shown(shape: Iterable[int]) -> str:
    return "(" + ", ".join(str(size) for size in shape) + ")"


def _derived(name: str) -> bool:
    return any(part in name for part in DERIVED)
