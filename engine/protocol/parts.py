"""Parts of messages: records that both sides use. Never a frame of their own."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0)]
Role = Literal["system", "user", "assistant", "tool"]
Region = Literal["answer", "thinking", "tool"]
StopReason = Literal[
    "end-of-turn", "stop-string", "max-tokens", "context-full", "stopped", "failed"
]
Phase = Literal["open", "tokenizer", "weights", "warm-up", "resume", "prefill"]
Tier = Literal["device", "host", "disk", "none"]
KvWish = Literal["full", "full-or-fp8", "fp8"]
Placement = Literal["resident", "smaller-chunks", "fp8-kv", "pictures-apart", "streamed"]
WaitReason = Literal["loading", "chats-at-once", "memory", "another-prompt"]
Purpose = Literal["chat", "side"]


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a message; never a frame of its own."""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, forbid_unknown_fields=True):
    """Something that one side tells the other."""


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
    """One pool as it stands; ``holders`` are (owner, bytes) of what is reserved or committed.

    Attributes:
        capacity_bytes: what the engine may hold there in all.
        free_bytes: what a reservation may still take.
        total_bytes: the whole of it, as the machine says; 0 where unknown.
        others_bytes: what other programs hold there, measured.
        label: what it is, for people, such as a GPU's name.
    """

    name: str
    capacity_bytes: Count
    free_bytes: Count
    holders: tuple[tuple[str, int], ...] = ()
    total_bytes: Count = 0
    others_bytes: Count = 0
    label: str = ""


class GpuFacts(Record, frozen=True, kw_only=True):
    """One GPU, measured or made up for a plan."""

    name: str
    total_bytes: Count
    free_bytes: Count


class StateFacts(Record, frozen=True, kw_only=True):
    """What is kept of one conversation under one model.

    Attributes:
        conversation: None for what several begin with, such as a system message.
        model: the checkpoint's name.
        tokens: of its longest state.
        bytes: of its states where they lie lowest, shared pages counted whole.
        own_bytes: what deleting them would free on the disk.
        tier: the quickest from which that state can be had.
        used_s: when it was last used, seconds since 1970.
    """

    conversation: str | None
    model: str
    tokens: Count
    bytes: Count
    own_bytes: Count
    tier: Tier
    pinned: bool = False
    used_s: float = 0.0


class ChatTier(Record, frozen=True, kw_only=True):
    """From where the loaded model can resume one conversation, and how much of it."""

    conversation: str
    tier: Tier
    tokens: Count = 0


class MeasuredMemory(Record, frozen=True, kw_only=True):
    """Memory of the engine's process since a model was loaded, beyond what it had before.

    None where the system does not tell.
    """

    anonymous_bytes: Count | None = None
    peak_bytes: Count | None = None
    planned_bytes: Count = 0


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
