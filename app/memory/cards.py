"""The pools of the memory page as records: what takes how much of each, in words and figures. Pure.

One card a pool: GPUs in their order, RAM, and the disk's share for kept chats. The parts of a card
add up to its whole, in the order in which a bar shows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from app.memory.words import GIBIBYTE, MEBIBYTE, gb, gib, whole_gb
from engine.protocol import MeasuredMemory, MemoryFacts, PlanLine, PoolFacts, StatesKept

RAM: Final = "ram"
GPU: Final = "gpu"
TOLERATED_SHARE: Final = 0.05
TOLERATED_BYTES: Final = 64 * MEBIBYTE
"""A measured peak may pass the plan by so much before it is marked."""


class PartKind(Enum):
    """What a part of a bar is; the value is the colour token, empty for what is drawn otherwise."""

    WEIGHTS = "bar_weights"
    PICTURES = "bar_pictures"
    CHATS = "bar_chats"
    KEPT = "bar_kept"
    WORKSPACE = "bar_workspace"
    RESERVE = "reserve"
    OTHER = "bar_other"
    FREE = "free"


ORDER: Final = tuple(PartKind)

OWNERS: Final[Mapping[str, tuple[PartKind, str]]] = MappingProxyType(
    {
        "weights": (PartKind.WEIGHTS, "Weights"),
        "picture part": (PartKind.PICTURES, "Pictures"),
        "kv pages": (PartKind.CHATS, "Chats"),
        "recurrent states": (PartKind.CHATS, "Chats"),
        "kept states": (PartKind.KEPT, "Kept chats"),
        "kept states in memory": (PartKind.KEPT, "Kept chats"),
        "workspace": (PartKind.WORKSPACE, "Workspace"),
        "logits": (PartKind.WORKSPACE, "Workspace"),
        "staging": (PartKind.CHATS, "Staging"),
        "transfers": (PartKind.CHATS, "Staging"),
        "reserve": (PartKind.RESERVE, "Reserve"),
    }
)
"""What people call the owners of the ledger; an owner that is not here goes by its own name."""


class Mark(Enum):
    """What a card's foot line begins with; the value is the icon."""

    NONE = ""
    GOOD = "check"
    WARN = "warn"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a pool: its kind, its name and how much it is, also as a figure."""

    kind: PartKind
    name: str
    bytes: int
    figure: str


@dataclass(frozen=True, slots=True)
class Card:
    """One pool as the page shows it.

    Attributes:
        pool: its name in the engine.
        icon: of the kind of pool.
        title: "GPU 0".
        label: what it is, such as a GPU's name; may be empty.
        used: the large figure; ``whole`` says of what, with the unit.
        parts: in the order of the bar; they add up to the whole.
        mark: whether the plan held.
        foot: the line below; may be empty.
    """

    pool: str
    icon: str
    title: str
    label: str
    used: str
    whole: str
    parts: tuple[Part, ...]
    mark: Mark = Mark.NONE
    foot: str = ""

    @property
    def description(self) -> str:
        """The whole card in one sentence, for a screen reader."""
        parts = ", ".join(f"{part.name} {part.figure}" for part in self.parts)
        return ". ".join(filter(None, (f"{self.used} {self.whole}", parts, self.foot)))


def cards(memory: MemoryFacts | None, states: StatesKept | None) -> tuple[Card, ...]:
    """The cards of what is known: GPUs, RAM, disk."""
    made: list[Card] = []
    if memory is not None:
        gpus = [pool for pool in memory.pools if pool.name.startswith(GPU)]
        made.extend(_gpu_card(pool, memory) for pool in sorted(gpus, key=lambda p: p.name))
        made.extend(_ram_card(pool, memory) for pool in memory.pools if pool.name == RAM)
    if states is not None:
        made.append(_disk_card(states))
    return tuple(made)


def has_gpu(memory: MemoryFacts | None) -> bool:
    """Whether the engine computes on a GPU, so that its pages lie there."""
    return memory is not None and any(pool.name.startswith(GPU) for pool in memory.pools)


def bar_parts(memory: MemoryFacts | None) -> tuple[Part, ...]:
    """The parts of the small bar in the sidebar: Hearth's own of the first GPU, else of RAM."""
    made = cards(memory, None)
    if not made:
        return ()
    others = (PartKind.RESERVE, PartKind.OTHER, PartKind.FREE)
    own = tuple(part for part in made[0].parts if part.kind not in others)
    rest = sum(part.bytes for part in made[0].parts if part.kind in others)
    return (*own, Part(PartKind.FREE, "Not Hearth's", rest, gib(rest)))


def _gpu_card(pool: PoolFacts, memory: MemoryFacts) -> Card:
    number = pool.name.removeprefix(GPU)
    parts = _pool_parts(pool, memory.plan)
    planned = sum(line.bytes for line in memory.plan if line.pool == pool.name)
    foot = f"Planned {gib(planned)} GiB" if planned else ""
    return _card(pool, parts, icon="gpu", title=f"GPU {number}".strip(), foot=foot)


def _ram_card(pool: PoolFacts, memory: MemoryFacts) -> Card:
    parts = _pool_parts(pool, memory.plan)
    mark, measured = _against_plan(memory.measured)
    kept = _planned(memory.plan, RAM, PartKind.KEPT)
    may = f"kept chats may use {_with_unit(kept)}" if kept else ""
    words = [word for word in (measured, may) if word]
    foot = " · ".join(words)
    return _card(pool, parts, icon="chip", title="RAM", mark=mark, foot=foot[:1].upper() + foot[1:])


def _card(
    pool: PoolFacts,
    parts: tuple[Part, ...],
    *,
    icon: str,
    title: str,
    foot: str,
    mark: Mark = Mark.NONE,
) -> Card:
    whole = pool.total_bytes or pool.capacity_bytes
    idle = (PartKind.FREE, PartKind.RESERVE)
    used = whole - sum(part.bytes for part in parts if part.kind in idle)
    return Card(
        pool.name,
        icon,
        title,
        pool.label if pool.label != title else "",
        f"{used / GIBIBYTE:.1f}",
        f"of {whole / GIBIBYTE:.1f} GiB",
        parts,
        mark,
        foot,
    )


def _pool_parts(pool: PoolFacts, plan: Iterable[PlanLine]) -> tuple[Part, ...]:
    """What is held, what others hold, what is left alone for them, and the rest."""
    whole = pool.total_bytes or pool.capacity_bytes
    held = _held(pool, plan)
    left = max(0, whole - sum(held.values()))
    others = min(left, pool.others_bytes)
    left -= others
    # What is over after all that is held here is not for the engine: it stays for other programs.
    reserve = min(left, max(0, whole - others - pool.capacity_bytes))
    idle = {
        (PartKind.RESERVE, "Left free"): reserve,
        (PartKind.OTHER, "Other apps"): others,
        (PartKind.FREE, "Free"): left - reserve,
    }
    amounts = held | idle
    shown = sorted(amounts, key=lambda key: ORDER.index(key[0]))
    return tuple(
        Part(kind, name, amounts[kind, name], gib(amounts[kind, name]))
        for kind, name in shown
        if amounts[kind, name] or kind is PartKind.FREE
    )


def _held(pool: PoolFacts, plan: Iterable[PlanLine]) -> dict[tuple[PartKind, str], int]:
    """Bytes by what people call them. Chats and kept chats share pages: the plan divides them."""
    found: dict[tuple[PartKind, str], int] = {}
    for owner, size in pool.holders:
        key = _named(owner)
        found[key] = found.get(key, 0) + size
    chats, kept = OWNERS["kv pages"], OWNERS["kept states"]
    if chats in found and kept not in found:
        share = min(found[chats], _planned(plan, pool.name, PartKind.KEPT))
        found[chats] -= share
        found[kept] = share
    return found


def _named(owner: str) -> tuple[PartKind, str]:
    known = OWNERS.get(owner.lower())
    return known if known is not None else (PartKind.WORKSPACE, owner[:1].upper() + owner[1:])


def _planned(plan: Iterable[PlanLine], pool: str, kind: PartKind) -> int:
    return sum(line.bytes for line in plan if line.pool == pool and _named(line.owner)[0] is kind)


def _against_plan(measured: MeasuredMemory) -> tuple[Mark, str]:
    planned, peak = measured.planned_bytes, measured.peak_bytes
    if not planned:
        return Mark.NONE, ""
    if peak is None:
        return Mark.NONE, f"planned {_with_unit(planned)}"
    most = planned * (1 + TOLERATED_SHARE) + TOLERATED_BYTES
    figures = (gib(planned), gib(peak))
    unit = "" if any(figure.endswith("MiB") for figure in figures) else " GiB"
    words = f"planned {figures[0]}, highest measured {figures[1]}{unit}"
    return (Mark.GOOD if peak <= most else Mark.WARN), words


def _with_unit(count: int) -> str:
    figure = gib(count)
    return figure if figure.endswith("MiB") else f"{figure} GiB"


def _disk_card(states: StatesKept) -> Card:
    single = max(0, states.disk_bytes - states.shared_bytes)
    left = max(0, states.quota_bytes - states.disk_bytes)
    parts = (
        Part(PartKind.KEPT, "Shared", states.shared_bytes, gb(states.shared_bytes)),
        Part(PartKind.CHATS, "Single chats", single, gb(single)),
        Part(PartKind.FREE, "Left", left, gb(left)),
    )
    free = f"{whole_gb(states.disk_free_bytes)} free on the disk"
    foot = f"{free} · oldest goes first" if states.quota_bytes else "Chats are not kept on the disk"
    return Card(
        "disk",
        "disk",
        "Disk",
        "",
        gb(states.disk_bytes),
        f"of {whole_gb(states.quota_bytes)} for kept chats",
        tuple(part for part in parts if part.bytes or part.kind is PartKind.FREE),
        foot=foot,
    )
