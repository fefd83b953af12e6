"""The checkpoint's tensors by name, each checked before a spec names it.

Keeps account of what was asked for, so that a tensor no one has a place for is told instead of
being left out in silence. No torch here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from engine.checkpoint.source import CheckpointSource, Dialect
from engine.errors import CheckpointUnreadable, UnsupportedFamily
from engine.models.spec import Linear, Norm

PICTURE_PARTS = (
    "v.",
    "mm.",
    "visual.",
    "vision_tower.",
    "vision_embedder.",
    "embed_vision.",
    "multi_modal_projector.",
)
OTHER_PARTS = (*PICTURE_PARTS, "a.", "audio_tower.", "embed_audio.")
"""How the names of picture and sound parts begin, after ``model.`` where that comes first."""
BODIES = (
    ("model.language_model.", ""),
    ("language_model.model.", "language_model."),
    ("model.", ""),
    ("", ""),
)
"""What may stand before the names of a published checkpoint's body, and before its head."""
_DRAFT = re.compile(r"(?:(?:language_model|model)\.)*mtp\.")
_NUMBERS = re.compile(r"(?<=\.)\d+(?=\.|$)")
_LAYER = re.compile(r"blk\.(\d+)\.")
DERIVED = (".attn_rot_embd", ".rotary_emb.inv_freq")


class TensorNames:
    """Tensors of one checkpoint while its spec is built; used from one thread, then dropped.

    Asked by GGUF's names whatever the file's own are: ``published`` translates stems
    ("blk.*.attn_q") or whole names to those of published checkpoints ("layers.*.self_attn.q_proj").
    Each ``*`` stands for one number: the layer's, then the expert's.
    """

    def __init__(
        self, source: CheckpointSource, published: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._tensors = source.tensors
        self._published = None if source.dialect is Dialect.GGUF else published
        self._bodies = _bodies(source)
        self._file = source.files[0].name
        self._family = source.architecture
        self._asked: set[str] = set()
        self._own: dict[str, str] = {}
        self._notes: list[str] = []

    def __len__(self) -> int:
        return len(self._tensors)

    def name(self, name: str) -> str:
        """The file's own name of a tensor."""
        if self._published is None:
            return name
        own = self._own.get(name)
        if own is None:
            own = self._own[name] = self._translated(self._published, name)
        return own

    @property
    def published(self) -> bool:
        """Whether the names are those of a published checkpoint or of MLX."""
        return self._published is not None

    @property
    def file(self) -> str:
        """The checkpoint's file, for messages."""
        return self._file

    def has(self, name: str) -> bool:
        """Whether the checkpoint has a tensor of this name."""
        return self.name(name) in self._tensors

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """The tensor's shape, slowest first, after a check of its number of dimensions."""
        name = self.name(name)
        facts = self._tensors.get(name)
        if facts is None:
            sentence = f"{self._file} has no tensor {name}, which the {self._family} family needs."
            raise CheckpointUnreadable(sentence, tensor=name)
        if len(facts.shape) != dimensions:
            raise self._misshapen(name, f"{dimensions} dimensions")
        self._asked.add(name)
        return facts.shape

    def checked(self, name: str, shape: tuple[int, ...]) -> str:
        """The file's own name, after the tensor was found to have exactly ``shape``."""
        if self.shape(name, len(shape)) != shape:
            raise self._misshapen(self.name(name), _shown(shape))
        return self.name(name)

    def one_of(self, name: str, shapes: Sequence[tuple[int, ...]]) -> str:
        """The file's own name, after the tensor was found to have one of ``shapes``."""
        facts = self._tensors.get(self.name(name))
        if facts is not None and facts.shape in shapes:
            return self.checked(name, facts.shape)
        return self.checked(name, shapes[0])

    def linear(self, stem: str, out_width: int, in_width: int) -> Linear:
        """``stem.weight`` of (out, in), with ``stem.bias`` where the file has one."""
        weight = self.checked(f"{stem}.weight", (out_width, in_width))
        bias = f"{stem}.bias"
        return Linear(weight, self.checked(bias, (out_width,)) if self.has(bias) else None)

    def norm(self, stem: str, width: int, eps: float, offset: float = 0.0) -> Norm:
        """``stem.weight`` of (width,)."""
        return Norm(self.checked(f"{stem}.weight", (width,)), eps, offset)

    def row(self, stem: str, in_width: int) -> Linear:
        """``stem.weight`` of one row, (1, in) or (in,)."""
        return Linear(self.one_of(f"{stem}.weight", ((1, in_width), (in_width,))))

    def leave(self, *names: str) -> None:
        """Let tensors be, if they are there, that the family's mathematics does not use."""
        self._asked.update(self.name(name) for name in names)

    def note(self, sentence: str) -> None:
        """Keep what a person should know about the checkpoint for ``leftovers``."""
        self._notes.append(sentence)

    def leftovers(self, draft_layers: range = range(0)) -> tuple[str, ...]:
        """Every note; with those about tensors of a model's other parts, such as its vision tower.

        Args:
            draft_layers: numbers of the layers that only propose tokens and do not run.

        Raises:
            UnsupportedFamily: a tensor was never asked for and is of no other part; leaving it
                out would compute another model than the file holds.
        """
        rest = [name for name in self._tensors if name not in self._asked]
        drafts = [name for name in rest if _draft_part(name, draft_layers)]
        rest = [name for name in rest if not _draft_part(name, draft_layers)]
        strange = [name for name in rest if not _other_part(name) and not _derived(name)]
        if strange:
            raise UnsupportedFamily(
                f"{self._file} has a tensor {strange[0]} that the {self._family} family has no "
                f"place for ({len(strange)} such tensors).",
                tensor=strange[0],
                count=len(strange),
            )
        others = sum(_other_part(name) for name in rest)
        told = (
            (others, "its picture or sound part"),
            (len(drafts), "its draft layer (multi-token prediction)"),
        )
        return *self._notes, *(
            f"{count} tensor{'s' * (count > 1)} of the file belong{'s' * (count == 1)} to {part}; "
            "not used."
            for count, part in told
            if count
        )

    def _translated(self, published: Mapping[str, str], name: str) -> str:
        pattern = _NUMBERS.sub("*", name)
        found = published.get(pattern)
        if found is None:
            stem, _, kind = pattern.rpartition(".")
            found = f"{published.get(stem, stem)}.{kind}"
        for number in _NUMBERS.findall(name):
            found = found.replace("*", number, 1)
        body, head = self._bodies
        return (head if found.startswith("lm_head") else body) + found

    def _misshapen(self, name: str, wanted: str) -> CheckpointUnreadable:
        found = _shown(self._tensors[name].shape)
        sentence = f"{self._file}: tensor {name} has shape {found}; wanted {wanted}."
        return CheckpointUnreadable(sentence, tensor=name, found=found, wanted=wanted)


def _shown(shape: Iterable[int]) -> str:
    return "(" + ", ".join(str(size) for size in shape) + ")"


def _bodies(source: CheckpointSource) -> tuple[str, str]:
    for body, head in BODIES:
        if f"{body}embed_tokens.weight" in source.tensors:
            return body, head
    return BODIES[-2]


def _draft_part(name: str, draft_layers: range) -> bool:
    layer = _LAYER.match(name)
    return bool(_DRAFT.match(name)) or (layer is not None and int(layer[1]) in draft_layers)


def _other_part(name: str) -> bool:
    return name.removeprefix("model.").startswith(OTHER_PARTS)


def _derived(name: str) -> bool:
    return any(part in name for part in DERIVED)
