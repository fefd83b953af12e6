"""The machine's memory at one moment: every pool's reading, and what the engine may hold there.

The one place that measures for composition, for plans and for what the window shows. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from engine.memory.gpus import read_gpus
from engine.memory.ledger import Admits, Ledger, StopAdmitting
from engine.memory.measured import anonymous_bytes
from engine.memory.pools import (
    GPU,
    PINNED,
    RAM,
    PoolReading,
    capacity_bytes,
    pinned_of,
    read_disk,
    read_ram,
)
from engine.protocol import PoolFacts


@dataclass(frozen=True, slots=True)
class MachineReading:
    """All pools, GPUs first, as they were measured."""

    pools: tuple[PoolReading, ...]

    @property
    def gpus(self) -> tuple[PoolReading, ...]:
        """The GPUs, in the driver's order."""
        return tuple(pool for pool in self.pools if pool.name.startswith(GPU))

    @property
    def behind(self) -> Mapping[str, str]:
        """Which pool's bytes are another's too; for the ledger."""
        return {PINNED: RAM} if any(pool.name == PINNED for pool in self.pools) else {}

    def pool(self, name: str) -> PoolReading | None:
        """One pool's reading; None where the machine has no such pool."""
        return next((pool for pool in self.pools if pool.name == name), None)

    def capacities(
        self,
        held_bytes: Mapping[str, int] = MappingProxyType({}),
        *,
        spends_headroom: bool = False,
    ) -> dict[str, int]:
        """What the engine may hold in each pool in all; for the ledger.

        Args:
            held_bytes: physical bytes by pool that the engine holds already.
            spends_headroom: see ``capacity_bytes``.
        """
        return {
            pool.name: capacity_bytes(
                pool, held_bytes.get(pool.name, 0), spends_headroom=spends_headroom
            )
            for pool in self.pools
        }


def read_machine(
    folder: Path,
    *,
    ram: Callable[[], PoolReading] = read_ram,
    gpus: Callable[[], tuple[PoolReading, ...]] = read_gpus,
) -> MachineReading:
    """Measure every pool; ``folder`` lies on the disk that counts.

    Memory is pinned only to be copied to a GPU, so without one there is no such pool.
    """
    memory, cards = ram(), gpus()
    pinned = (pinned_of(memory),) if cards else ()
    return MachineReading((*cards, memory, *pinned, read_disk(folder)))


def refresh(
    ledger: Ledger,
    read: Callable[[], MachineReading],
    own: Callable[[], int | None] = anonymous_bytes,
) -> Admits | StopAdmitting:
    """Measure again between two pieces of work; the answer says where nothing more may begin.

    What is held counts as far as it is physical: RAM that was allocated and not yet touched is
    still free to the system. A pool that the new measurement lacks, or that the ledger never had,
    keeps what it was. Where measuring fails, nothing has changed.
    """
    machine = read()
    held = {pool.name: pool.committed_bytes for pool in ledger.census()}
    physical = own()
    if physical is not None and RAM in held:
        held[RAM] = min(held[RAM], physical)
    measured = machine.capacities(held)
    return ledger.refresh({pool: size for pool, size in measured.items() if pool in held})


def pool_facts(ledger: Ledger, machine: MachineReading) -> tuple[PoolFacts, ...]:
    """Every pool of the ledger with what was measured of it, for the window."""
    found = []
    for pool in ledger.census():
        reading = machine.pool(pool.name) or PoolReading(pool.name, 0, 0)
        found.append(
            PoolFacts(
                name=pool.name,
                capacity_bytes=pool.capacity_bytes,
                free_bytes=pool.free_bytes,
                holders=pool.holders,
                total_bytes=reading.total_bytes,
                others_bytes=reading.others_bytes,
                label=reading.label,
            )
        )
    return tuple(found)
