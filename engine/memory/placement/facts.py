"""What the planner is given: the machine's pools, what a model takes, what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache.formats import PAGE_ROWS, KvFormat
from engine.cache.pages import pages_for
from engine.memory.pools import PINNED, PINNED_SHARE
from engine.models.spec import PageGroupSpec, RecurrentSpec
from engine.protocol import KvWish


@dataclass(frozen=True, slots=True)
class Room:
    """One pool as the planner sees it.

    Attributes:
        free_bytes: what may be taken, after what is left to other programs.
        total_bytes: the whole of it, 0 where unknown.
        holders: (owner, bytes) of what is taken, the largest first.
        label: what it is, for people.
    """

    name: str
    free_bytes: int
    total_bytes: int = 0
    holders: tuple[tuple[str, int], ...] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """The pools that a model may lie in.

    Attributes:
        gpu: what computes; None where the processor does.
        device: what computes, for people.
    """

    ram: Room
    gpu: Room | None = None
    device: str = ""

    @property
    def computing(self) -> Room:
        """The pool that weights and pages lie in."""
        return self.ram if self.gpu is None else self.gpu

    @property
    def pinned(self) -> Room:
        """RAM that a GPU copies from without waiting; its bytes count as RAM too."""
        share = self.ram.free_bytes // PINNED_SHARE, self.ram.total_bytes // PINNED_SHARE
        return Room(PINNED, *share, label="the part of RAM that a GPU copies from")


@dataclass(frozen=True, slots=True)
class VisionPart:
    """What reads pictures.

    Attributes:
        longest_block_rows: rows of the largest picture that attend to each other both ways, 0 for
            pictures whose rows attend like text.
    """

    weight_bytes: int
    workspace_bytes: int
    longest_block_rows: int = 0


@dataclass(frozen=True, slots=True)
class Streamable:
    """How the weights divide where not all of them can stay on the GPU.

    Attributes:
        layer_bytes: of each layer, its experts not counted.
        experts_bytes: all experts of all layers; 0 for a model without.
        expert_bytes: the largest of them.
        expert_layers: layers with experts, ``expert_count`` in each, ``active_count`` at work.
    """

    layer_bytes: tuple[int, ...]
    experts_bytes: int = 0
    expert_bytes: int = 0
    expert_layers: int = 0
    expert_count: int = 0
    active_count: int = 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a model takes besides its pages and states, in bytes of the pool that computes.

    Attributes:
        workspace_bytes: whatever is asked for.
        row_bytes: workspace for each row of a prompt chunk.
        stream_page_bytes: workspace for each page of the longest context of each chat.
        step_row_bytes: workspace for each row of a step, logits apart.
        steps_double: steps have 1, 2, 4 or more rows, as they were recorded, and not every number.
        logit_bytes: of one row of logits.
        loading_bytes: workspace while weights are prepared, which is given back after that.
        vocabulary_bytes: the tokenizer's words and merges, in RAM whatever computes.
        weights: how they lie in memory, for the plan.
        vision: None for a model that reads no pictures.
        streamable: None where weights cannot lie anywhere else.
    """

    weight_bytes: int
    workspace_bytes: int = 0
    row_bytes: int = 0
    stream_page_bytes: int = 0
    step_row_bytes: int = 0
    steps_double: bool = False
    logit_bytes: int = 0
    loading_bytes: int = 0
    vocabulary_bytes: int = 0
    weights: str = "laid out in memory for this processor"
    vision: VisionPart | None = None
    streamable: Streamable | None = None

    def workspace(self, context_tokens: int, streams: int, rows: int) -> int:
        """Bytes of workspace for so many chats of so many tokens and chunks of ``rows``."""
        pages = streams * pages_for(context_tokens)
        computing = self.workspace_bytes + rows * self.row_bytes + pages * self.stream_page_bytes
        computing += self._step_rows(streams) * self.step_row_bytes
        return max(computing, self.loading_bytes)

    def logits(self, streams: int) -> int:
        """Bytes of the logits of a step, and of one prompt's last row."""
        return (self._step_rows(streams) + 1) * self.logit_bytes

    def _step_rows(self, streams: int) -> int:
        return 1 << (streams - 1).bit_length() if self.steps_double else streams


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asked for.

    Attributes:
        context_tokens: None lets the planner choose.
        streams: chats that may run at once.
        kv: whether K and V may, or shall, be kept in 8 bits.
    """

    context_tokens: int | None
    streams: int
    kv: KvWish = "full"


@dataclass(frozen=True, slots=True)
class Geometry:
    """The facts of a checkpoint and a backend that the page sizes follow from.

    Attributes:
        chunk_rows: the most prompt rows computed at a time.
        kv_format: how K and V are stored unless in 8 bits.
        recurrent: None for a model without recurrent layers.
        least_chunk_rows: the fewest to which memory may bring that down.
        grid_rows: states are kept at multiples of it.
    """

    groups: Sequence[PageGroupSpec]
    context_tokens: int
    chunk_rows: int
    kv_format: KvFormat
    recurrent: RecurrentSpec | None = None
    least_chunk_rows: int = PAGE_ROWS
    grid_rows: int = PAGE_ROWS
