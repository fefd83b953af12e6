"""What the engine tells the app. ``Welcome`` comes first."""

from __future__ import annotations

import msgspec

from engine.protocol.parts import (
    ChatTier,
    CheckpointFacts,
    Count,
    MeasuredMemory,
    Message,
    Milliseconds,
    ModelFacts,
    Phase,
    Placement,
    PlanLine,
    PoolFacts,
    Region,
    StateFacts,
    StopReason,
    Tier,
    Timings,
    ToolCall,
    WaitReason,
)


class Welcome(Message, frozen=True, kw_only=True):
    """The engine's first message: what it is and what it runs on.

    ``capabilities`` are the processor's flags that matter, and last what was chosen for them.
    """

    version: int
    engine: str
    pid: Count
    device: str
    capabilities: tuple[str, ...] = ()
    threads: Count = 0


class Loaded(Message, frozen=True, kw_only=True):
    """A checkpoint is loaded and warm."""

    request: Count
    model: ModelFacts
    load_ms: Milliseconds
    plan: tuple[PlanLine, ...] = ()


class Unloaded(Message, frozen=True, kw_only=True):
    """Nothing is loaded any more."""

    request: Count


class Planned(Message, frozen=True, kw_only=True):
    """What loading would take; ``refusal`` says in one sentence why it does not fit or run.

    Attributes:
        device: what would compute, for people.
        streams: chats at once that the plan has room for.
        states: kept prompt states that there is room for where it computes.
        host_state_bytes: for kept states in RAM, what is being written and read included.
        kv_format: of K and V, such as "fp16".
        chunk_rows: prompt rows computed at a time.
        placement: the rung of the ladder; None where nothing fits.
        fitting_context_tokens: where it is refused, the longest context that would fit; 0 for none.
        pools: with what was free there for the plan, the one that computes first; what is pinned
            counts as RAM too.
    """

    request: Count
    context_tokens: Count
    lines: tuple[PlanLine, ...]
    refusal: str | None = None
    device: str = ""
    streams: Count = 0
    states: Count = 0
    host_state_bytes: Count = 0
    kv_format: str = ""
    chunk_rows: Count = 0
    placement: Placement | None = None
    fitting_context_tokens: Count = 0
    pools: tuple[PoolFacts, ...] = ()


class Queued(Message, frozen=True, kw_only=True):
    """Where a generation waits, told anew whenever that changes.

    Attributes:
        position: 1 is next.
        needed_bytes, free_bytes: of the memory that it waits for; 0 for other reasons.
    """

    request: Count
    position: Count
    reason: WaitReason
    needed_bytes: Count = 0
    free_bytes: Count = 0


class ChatTiers(Message, frozen=True, kw_only=True):
    """Every conversation of which the loaded model has a state; told anew when it changes."""

    chats: tuple[ChatTier, ...]


class StatesKept(Message, frozen=True, kw_only=True):
    """What is kept of every conversation, the last used first."""

    request: Count
    states: tuple[StateFacts, ...]
    disk_bytes: Count
    quota_bytes: Count
    disk_free_bytes: Count
    shared_bytes: Count = 0


class Settled(Message, frozen=True, kw_only=True):
    """Background work ended, or the time was over: then ``waiting_bytes`` are not yet on disk."""

    request: Count
    waiting_bytes: Count


class Progress(Message, frozen=True, kw_only=True):
    """How far a load or a prefill is, in bytes or tokens."""

    request: Count
    phase: Phase
    done: Count
    total: Count


class Tokens(Message, frozen=True, kw_only=True):
    """Newly generated whole characters and the ids behind them, gathered for about 16 ms."""

    request: Count
    region: Region
    text: str
    ids: tuple[int, ...]


class Finished(Message, frozen=True, kw_only=True):
    """A generation ended.

    ``ids`` are exactly what was generated, the end id included; ``text`` is what Tokens carried of
    region "answer", ``thinking_text`` of region "thinking"; ``tool_calls`` are what could be read
    of region "tool". ``resumed_tokens`` of the prompt came from a kept state; ``reason`` says why
    where that is little; ``rewritten_from`` is the first message that the prompt showed otherwise
    than the turn before, as where a template drops past thoughts.

    Attributes:
        resumed_from: the slowest tier from which a part of the state came.
        resumed_bytes: read from there; 0 from the device, where nothing moves.
        resumed_ms: from the begin of the resume to its end.
        dropped_messages: the oldest ones after the system message that were left out.
        begun_tokens: how many of ``ids`` were the reply's beginning in the request; text and ids
            are those of the whole reply, Tokens carried what is new.
    """

    request: Count
    text: str
    thinking_text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    ids: tuple[int, ...]
    prompt_tokens: Count
    resumed_tokens: Count
    resumed_from: Tier = "none"
    resumed_bytes: Count = 0
    resumed_ms: Milliseconds = 0.0
    dropped_messages: Count = 0
    begun_tokens: Count = 0
    timings: Timings
    stop_reason: StopReason
    seed: int
    template_hash: str | None = None
    reason: str | None = None
    rewritten_from: Count | None = None
    notes: tuple[str, ...] = ()


class Counted(Message, frozen=True, kw_only=True):
    """The tokens that a text takes."""

    request: Count
    tokens: Count


class Inspected(Message, frozen=True, kw_only=True):
    """What checkpoint files are, in the order of the paths that were asked for."""

    request: Count
    files: tuple[CheckpointFacts, ...]


class MemoryFacts(Message, frozen=True, kw_only=True):
    """Every pool as it stands, and the loaded model's plan beside what was measured."""

    request: Count
    pools: tuple[PoolFacts, ...]
    plan: tuple[PlanLine, ...] = ()
    measured: MeasuredMemory = MeasuredMemory()


class Failure(Message, frozen=True, kw_only=True):
    """A request, or the engine itself where ``request`` is None, failed."""

    request: int | None = None
    code: str
    sentence: str
    numbers: dict[str, int | float | str] = msgspec.field(default_factory=dict)


EngineMessage = (
    Welcome
    | Loaded
    | Unloaded
    | Planned
    | Inspected
    | Progress
    | Queued
    | Tokens
    | Finished
    | Counted
    | MemoryFacts
    | ChatTiers
    | StatesKept
    | Settled
    | Failure
)
