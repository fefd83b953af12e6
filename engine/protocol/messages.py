"""Every message between the app and the engine.

The first message of the app is ``Hello``, the first of the engine ``Welcome``; nothing else is sent
before. This package imports neither torch nor Qt; it is all that the app may import of the engine.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

PROTOCOL_VERSION: Final = 2

Count = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0)]
Role = Literal["system", "user", "assistant", "tool"]
Region = Literal["answer", "thinking", "tool"]
StopReason = Literal[
    "end-of-turn", "stop-string", "max-tokens", "context-full", "stopped", "failed"
]
Phase = Literal["open", "tokenizer", "weights", "warm-up", "prefill"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a message; never a frame of its own."""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    """Something that one side tells the other."""


# Parts -----------------------------------------------------------------------------------------


class Tool(Record, frozen=True, kw_only=True):
    """Something that a model may ask to be called; ``parameters`` is a JSON schema as text."""

    name: str
    description: str = ""
    parameters: str = "{}"


class ToolCall(Record, frozen=True, kw_only=True):
    """A model's wish to call a tool; ``arguments`` is a JSON object as text."""

    name: str
    arguments: str


class ChatMessage(Record, frozen=True, kw_only=True):
    """One turn of the conversation; a tool's result has the role "tool" and follows its call.

    ``thinking_text`` is what the model thought before this reply: some templates show it again
    as long as its tool calls are being answered.

    ``ids`` are the exact ids of a reply as it was generated, with the hash of the template they
    were generated under; the engine splices them where the rendered text agrees.
    """

    role: Role
    text: str
    ids: tuple[int, ...] = ()
    template_hash: str | None = None
    thinking_text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class Sampling(Record, frozen=True, kw_only=True):
    """How the next token is drawn; None takes the checkpoint's recommendation.

    ``temperature`` 0 is greedy; ``top_k`` 0 is off; ``max_tokens`` None runs to the context's end;
    ``seed`` None is derived from the prompt and the sibling number.
    """

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()


class PlanLine(Record, frozen=True, kw_only=True):
    """One line of a plan: what takes how many bytes of which pool, and why."""

    pool: str
    owner: str
    bytes: Count
    reason: str


class PoolFacts(Record, frozen=True, kw_only=True):
    """One pool as it stands; ``holders`` are (owner, bytes) of what is reserved or committed."""

    name: str
    capacity_bytes: Count
    free_bytes: Count
    holders: tuple[tuple[str, int], ...] = ()


class ModelFacts(Record, frozen=True, kw_only=True):
    """What the app shows of a loaded checkpoint.

    ``can_think``: its template takes ``Generate.thinking``. ``can_call_tools``: it takes tools.
    """

    name: str
    path: str
    architecture: str
    context_tokens: Count
    vocabulary: Count
    file_bytes: Count
    format: str
    has_template: bool
    template_hash: str
    can_think: bool = False
    can_call_tools: bool = False
    notes: tuple[str, ...] = ()


class CheckpointFacts(Record, frozen=True, kw_only=True):
    """What a checkpoint says of itself, read without loading it.

    ``problem`` says in one sentence why Hearth cannot use it; then the other facts may be empty.

    Attributes:
        format: the one that holds the most bytes; ``format_bytes`` has all, the most first.
        parameters: elements of all tensors, scales and minima not counted.
        has_vision: whether the files, or one beside them, hold what reads pictures.
        step_bytes: weights that one generated token reads; of experts the active share.
        kv_token_bytes: K and V of a token in layers that attend to all, in 16-bit numbers.
        sliding_token_bytes: the same in sliding layers, which hold at most ``sliding_bytes``.
        recurrent_bytes: the recurrent state of a conversation, whatever its length.
    """

    path: str
    name: str = ""
    architecture: str = ""
    family: str = ""
    format: str = ""
    format_bytes: dict[str, Count] = {}
    file_bytes: Count = 0
    parameters: Count = 0
    context_tokens: Count = 0
    vocabulary: Count = 0
    has_template: bool = False
    has_vision: bool = False
    step_bytes: Count = 0
    kv_token_bytes: Count = 0
    sliding_token_bytes: Count = 0
    sliding_bytes: Count = 0
    recurrent_bytes: Count = 0
    problem: str | None = None


class Timings(Record, frozen=True, kw_only=True):
    """Times of one generation; None where nothing was measured.

    ``first_token_ms`` counts from the generate frame's arrival to the first token frame.
    """

    queue_ms: Milliseconds = 0.0
    prefill_ms: Milliseconds | None = None
    first_token_ms: Milliseconds | None = None
    decode_ms: Milliseconds | None = None


# App to engine ---------------------------------------------------------------------------------


class Hello(Message, frozen=True, kw_only=True):
    """The app's first message."""

    version: int
    app: str


class Load(Message, frozen=True, kw_only=True):
    """Load a checkpoint, replacing the one that is loaded. Answered by Loaded or Failure."""

    request: Count
    path: str
    context_tokens: int | None = None
    streams: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4


class Unload(Message, frozen=True, kw_only=True):
    """Give the loaded checkpoint's memory back. Answered by Unloaded."""

    request: Count


class Plan(Message, frozen=True, kw_only=True):
    """Ask what loading would take. Answered by Planned or Failure."""

    request: Count
    path: str
    context_tokens: int | None = None
    streams: Annotated[int, msgspec.Meta(ge=1, le=64)] = 4


class Generate(Message, frozen=True, kw_only=True):
    """Generate a reply to ``messages``, or a continuation of ``raw`` without any template.

    ``date`` (ISO, of the conversation's first message) is what a template sees as today;
    ``sibling`` numbers the replies to one message, so that a regenerated one differs.
    """

    request: Count
    messages: tuple[ChatMessage, ...] = ()
    raw: str | None = None
    sampling: Sampling = Sampling()
    date: str | None = None
    sibling: Count = 0
    thinking: bool | None = None
    tools: tuple[Tool, ...] = ()


class Cancel(Message, frozen=True, kw_only=True):
    """Stop a generation; its Finished says "stopped". Unknown requests are ignored."""

    request: Count


class Inspect(Message, frozen=True, kw_only=True):
    """Ask what checkpoint files are, loading none. Answered by Inspected, one entry a path."""

    request: Count
    paths: tuple[str, ...]


class CountTokens(Message, frozen=True, kw_only=True):
    """Ask how many tokens a text takes with the loaded checkpoint. Answered by Counted."""

    request: Count
    text: str


class AskMemory(Message, frozen=True, kw_only=True):
    """Ask for MemoryFacts."""

    request: Count


class Shutdown(Message, frozen=True, kw_only=True):
    """Stop what runs, free everything and exit with code 0."""


# Engine to app ---------------------------------------------------------------------------------


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
    """What loading would take; ``refusal`` says in one sentence why it does not fit."""

    request: Count
    context_tokens: Count
    lines: tuple[PlanLine, ...]
    refusal: str | None = None


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
    """

    request: Count
    text: str
    thinking_text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    ids: tuple[int, ...]
    prompt_tokens: Count
    resumed_tokens: Count
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
    """Every pool as it stands."""

    request: Count
    pools: tuple[PoolFacts, ...]


class Failure(Message, frozen=True, kw_only=True):
    """A request, or the engine itself where ``request`` is None, failed."""

    request: int | None = None
    code: str
    sentence: str
    numbers: dict[str, int | float | str] = {}


AppMessage = (
    Hello | Load | Unload | Plan | Inspect | Generate | Cancel | CountTokens | AskMemory | Shutdown
)
EngineMessage = (
    Welcome
    | Loaded
    | Unloaded
    | Planned
    | Inspected
    | Progress
    | Tokens
    | Finished
    | Counted
    | MemoryFacts
    | Failure
)
