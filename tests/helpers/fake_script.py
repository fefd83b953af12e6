"""What the fake engine is told to do: one record, sent to it as JSON on its command line."""

from __future__ import annotations

from typing import Literal

import msgspec

from engine.protocol import (
    PROTOCOL_VERSION,
    ChatTier,
    MeasuredMemory,
    PlanLine,
    PoolFacts,
    StateFacts,
    Tier,
    WaitReason,
)

DEFAULT_REPLY = "The capital of France is Paris."


class Resume(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each reply says of its kept state, and what the prompt left out."""

    tokens: int = 0
    tier: Tier = "none"
    bytes: int = 0
    ms: float = 0.0
    reason: str | None = None
    dropped_messages: int = 0


class Wait(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reply waits so long before it begins, and says so."""

    seconds: float
    reason: WaitReason = "chats-at-once"
    position: int = 1
    needed_bytes: int = 0
    free_bytes: int = 0


class Script(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the fake engine does; the defaults answer every request at once.

    Attributes:
        reply: the words of each reply; "{echo}" becomes the last message's text, "{seed}" the
            seed, "{messages}" every message as role:text, "{arguments}" what the engine was started
            with besides the script.
        times: how often the reply is said, with a blank between.
        thinking: sent before the reply, as region "thinking".
        words_per_s: pace of the reply, 0 for as fast as the pipe takes.
        load_steps, load_s: Progress messages of a load and how long it takes in all.
        load_failure, reply_failure: a code that is answered instead, with a sentence.
        end_at: what to do after ``end_after`` words of a reply, or in the load for "load", or
            before Welcome for "start", or when asked to settle for "settle".
        once: a file; what ``end_at`` asks for is done only while it does not exist.
        model_notes: what should be known of the loaded model.
        ignores_cancel, ignores_end: a stuck engine.
        at_once: replies that are written at the same time; above 1 each has its own thread.
        resume, wait: of every reply.
        tiers: told after each load, and after each reply with its chat added as "device".
        states, quota_bytes: kept at the start; pinned and cleared as asked.
        pools, plan, measured: what the memory is said to be.
        disk_bytes, shared_bytes: what the kept states take on the disk; None is their sum.
        states_failure: a code that is answered where states are pinned or cleared.
        settle_s: how long background work takes after a reply.
        refusal: numbers of ``load_failure``; a load that spends the headroom or has a context of
            at most "fitting_context_tokens" goes well.
        heard: a file that gets a line for each OpenChats, KnownChats, Load and ClearStates.
    """

    reply: str = DEFAULT_REPLY
    times: int = 1
    thinking: str = ""
    words_per_s: float = 0.0
    load_steps: int = 2
    load_s: float = 0.0
    prompt_s: float = 0.0
    load_failure: str | None = None
    reply_failure: str | None = None
    end_at: Literal["never", "start", "load", "reply", "settle"] = "never"
    end_how: Literal["kill", "exit", "garbage", "hang", "half-frame"] = "kill"
    end_after: int = 3
    once: str | None = None
    ignores_cancel: bool = False
    ignores_end: bool = False
    welcome_s: float = 0.0
    welcome_version: int = PROTOCOL_VERSION
    model_notes: tuple[str, ...] = ()
    log_line: str = "fake engine started"
    at_once: int = 1
    resume: Resume = Resume()
    wait: Wait | None = None
    tiers: tuple[ChatTier, ...] = ()
    states: tuple[StateFacts, ...] = ()
    pools: tuple[PoolFacts, ...] = (
        PoolFacts(name="ram", capacity_bytes=10, free_bytes=5, holders=(("w", 5),)),
    )
    plan: tuple[PlanLine, ...] = ()
    measured: MeasuredMemory = MeasuredMemory()
    disk_bytes: int | None = None
    shared_bytes: int = 0
    states_failure: str | None = None
    quota_bytes: int = 20_000_000_000
    settle_s: float = 0.0
    refusal: dict[str, int | str] = {}
    heard: str | None = None
