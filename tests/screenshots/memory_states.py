"""The memory page, the marks of the sidebar and a refused model, as they are pictured."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt

from app.chat.conversation import ReplyContent, ReplyFacts, TurnState, chat_name
from app.chat.storage.conversations import ConversationEntry
from app.chat.store import Store, open_store
from app.directories import directories, make_private
from app.library.catalogue import STARTER
from app.library.loaded import ModelPhase
from app.look.theme import Preference
from app.pages.names import PageName
from engine.protocol import ChatTier, MeasuredMemory, PlanLine, PoolFacts, StateFacts, Tier, Timings
from tests.helpers.fake_engine import Script
from tests.helpers.qt import application, hover, press, run_for, wait_until
from tests.helpers.window import TestWindow
from tests.screenshots.font import inter

GIB, MIB, MB = 2**30, 2**20, 10**6
QWEN, GEMMA = "Qwen3.5 9B", "Gemma 4 12B"
DAY_S = 86_400
ONLY_TEXT = "Birthday speech for the choir"
CHATS: tuple[tuple[str, Tier, int, int, str, float, bool], ...] = (
    ("Gas meter readings", "device", 8_768, 324 * MIB, QWEN, 5, False),
    ("House rules for the translations", "device", 12_416, 438 * MIB, QWEN, 1_200, True),
    ("Rewrite of the tenancy letter", "device", 3_008, 144 * MIB, QWEN, 60, False),
    ("Holiday plan, two weeks in Crete", "host", 21_504, 722 * MIB, QWEN, 1 * DAY_S, False),
    ("Regex for invoice numbers", "host", 2_304, 122 * MIB, QWEN, 7_200, False),
    ("Photos of the roof damage", "disk", 14_080, 514 * MB, QWEN, 4 * DAY_S, False),
    ("Cover letter, second draft", "disk", 4_096, 403 * MB, GEMMA, 1 * DAY_S, False),
    ("Why does my NAS wake at 3 am?", "disk", 5_824, 243 * MB, QWEN, 1 * DAY_S, False),
    ("وصفة خبز الزعتر", "disk", 2_944, 149 * MB, QWEN, 6 * DAY_S, False),
    (ONLY_TEXT, "none", 0, 0, "", 5 * DAY_S, False),
)
GPU = PoolFacts(
    name="gpu0",
    capacity_bytes=int(10.6 * GIB),
    free_bytes=int(0.9 * GIB),
    holders=(
        ("weights", int(5.3 * GIB)),
        ("KV pages", int(3.1 * GIB)),
        ("picture part", int(0.9 * GIB)),
        ("workspace", int(0.4 * GIB)),
    ),
    total_bytes=12 * GIB,
    others_bytes=int(0.9 * GIB),
    label="RTX 4070",
)
RAM = PoolFacts(
    name="ram",
    capacity_bytes=int(17.4 * GIB),
    free_bytes=int(13 * GIB),
    holders=(("kept states in memory", 3 * GIB), ("staging", GIB)),
    total_bytes=int(31.2 * GIB),
    others_bytes=int(11.8 * GIB),
)
RAM_ALONE = PoolFacts(
    name="ram",
    capacity_bytes=int(11.4 * GIB),
    free_bytes=int(9.9 * GIB),
    holders=(("weights", 88 * MIB), ("KV pages", int(1.3 * GIB)), ("workspace", 61 * MIB)),
    total_bytes=int(15.6 * GIB),
    others_bytes=int(3.2 * GIB),
)
GPU_PLAN = (
    PlanLine(pool="gpu0", owner="weights", bytes=int(5.3 * GIB), reason=""),
    PlanLine(pool="gpu0", owner="KV pages", bytes=int(2.1 * GIB), reason=""),
    PlanLine(pool="gpu0", owner="kept states", bytes=GIB, reason=""),
    PlanLine(pool="gpu0", owner="workspace", bytes=int(1.8 * GIB), reason=""),
    PlanLine(pool="ram", owner="kept states in memory", bytes=4 * GIB, reason=""),
)
RAM_PLAN = (
    PlanLine(pool="ram", owner="weights", bytes=88 * MIB, reason=""),
    PlanLine(pool="ram", owner="KV pages", bytes=720 * MIB, reason=""),
    PlanLine(pool="ram", owner="kept states", bytes=600 * MIB, reason=""),
    PlanLine(pool="ram", owner="workspace", bytes=61 * MIB, reason=""),
)


def filled(folder: Path) -> tuple[ConversationEntry, ...]:
    """Store the chats, and return them in the order of ``CHATS``."""
    places = directories(folder)
    make_private(places.data)
    clock_ms = [0]
    store = open_store(places.store_file, clock_ms=lambda: clock_ms[0]).store
    now_s = time.time()
    for title, _tier, _tokens, _size, _model, ago_s, _pinned in CHATS:
        clock_ms[0] = round(1000 * (now_s - ago_s))
        chat = store.conversations.create(title=title)
        if title == ONLY_TEXT:
            _reply_of(store, chat.id, tokens=5_210)
    entries = {entry.title: entry for entry in store.conversations.entries()}
    store.close()
    return tuple(entries[chat[0]] for chat in CHATS)


def _reply_of(store: Store, chat: int, *, tokens: int) -> None:
    """A chat of so many tokens, which the starter model once read at 2,400 a second."""
    user = store.turns.add_user(chat, None, "Please write a birthday speech.")
    facts = ReplyFacts(
        model_name=Path(STARTER.file_name).stem,
        prompt_tokens=tokens - 10,
        completion_tokens=10,
        timings=Timings(prefill_ms=(tokens - 10) / 2.4),
    )
    reply = store.turns.begin_reply(chat, user.id, facts)
    store.turns.end_reply(reply.id, TurnState.WHOLE, ReplyContent(text="Dear choir"), facts)


def script(entries: tuple[ConversationEntry, ...], *, gpu: bool, **more: object) -> Script:
    """An engine that keeps what ``CHATS`` says."""
    now_s = time.time()
    tiers = []
    states = []
    for entry, chat in zip(entries, CHATS, strict=True):
        _title, tier, tokens, size, model, ago_s, pinned = chat
        if tier == "none":
            continue
        name = chat_name(entry.id)
        tiers.append(ChatTier(conversation=name, tier=tier, tokens=tokens))
        states.append(
            StateFacts(
                conversation=name,
                model=model,
                tokens=tokens,
                bytes=size,
                own_bytes=size // 2,
                tier=tier,
                pinned=pinned,
                used_s=now_s - ago_s,
            )
        )
    planned = 88 * MIB + 720 * MIB + 600 * MIB + 61 * MIB
    return Script(
        tiers=tuple(tiers),
        states=tuple(states),
        pools=(GPU, RAM) if gpu else (RAM_ALONE,),
        plan=GPU_PLAN if gpu else RAM_PLAN,
        measured=MeasuredMemory()
        if gpu
        else MeasuredMemory(peak_bytes=planned - 40 * MIB, planned_bytes=planned),
        disk_bytes=18_600 * MB,
        shared_bytes=14_200 * MB,
        quota_bytes=40_000 * MB,
        load_s=0.05,
        **more,  # type: ignore[arg-type]
    )


def _at_memory(folder: Path, *, gpu: bool = False, **more: object) -> TestWindow:
    made = _open(folder, script(filled(folder), gpu=gpu, **more))
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.READY)
    made.window.show_page(PageName.MEMORY)
    desk = made.whole.memory.desk if made.whole.memory is not None else None
    wait_until(lambda: desk is not None and len(desk.view.cards) > 1 and bool(desk.view.rows))
    run_for(0.2)
    return made


def _memory(folder: Path) -> TestWindow:
    return _at_memory(folder)


def _memory_gpu(folder: Path) -> TestWindow:
    made = _at_memory(folder, gpu=True)
    hover(made.window.memory.kept.table, 3)
    return made


def _memory_gpu_dark(folder: Path) -> TestWindow:
    made = _memory_gpu(folder)
    made.whole.look.prefer(Preference.DARK)
    run_for(0.1)
    return made


def _memory_keys(folder: Path) -> TestWindow:
    made = _at_memory(folder, gpu=True)
    table = made.window.memory.kept.table
    table.head.sectionClicked.emit(1)
    made.window.memory.kept.filter.setFocus()
    press(made.window.memory.kept.filter.line, Qt.Key.Key_Tab)
    made.window.memory.kept.table.setFocus(Qt.FocusReason.TabFocusReason)
    press(table, Qt.Key.Key_Down)
    press(table, Qt.Key.Key_Down)
    run_for(0.1)
    return made


def _memory_compact(folder: Path) -> TestWindow:
    made = _at_memory(folder, gpu=True)
    made.window.resize(800, 600)
    run_for(0.1)
    return made


def _memory_empty(folder: Path) -> TestWindow:
    made = _open(folder, Script(pools=(RAM_ALONE,), plan=RAM_PLAN))
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.READY)
    made.window.show_page(PageName.MEMORY)
    run_for(0.4)
    return made


def _memory_question(folder: Path) -> TestWindow:
    made = _at_memory(folder, gpu=True)
    table = made.window.memory.kept.table
    table.selectRow(5)
    table.setFocus()
    table.delete_wanted.emit(table.kept.rows[5])
    run_for(0.2)
    return made


def _marks(folder: Path) -> TestWindow:
    made = _open(folder, script(filled(folder), gpu=True, reply="One word. " * 40, words_per_s=20))
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.READY)
    made.write("And the total for the year?")
    wait_until(lambda: len(made.reply_so_far()) > 60)
    return made


def _refused(folder: Path) -> TestWindow:
    refusal: dict[str, int | str] = {
        "needed_bytes": 13 * GIB + 100 * MIB,
        "free_bytes": int(8.9 * GIB),
        "pool": "gpu0",
        "others_bytes": int(2.6 * GIB),
        "fitting_context_tokens": 16_384,
    }
    made = _open(folder, Script(load_failure="memory-refused", refusal=refusal))
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.FAILED)
    run_for(0.2)
    return made


def _unloaded(folder: Path) -> TestWindow:
    made = _open(folder, script(filled(folder), gpu=False))
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.READY)
    made.whole.workshop.model.unload()
    run_for(0.3)
    return made


def _open(folder: Path, what: Script) -> TestWindow:
    application()
    return TestWindow(folder, what, font=inter()).start()


MEMORY_STATES: dict[str, Callable[[Path], TestWindow]] = {
    "memory": _memory,
    "memory-gpu": _memory_gpu,
    "memory-gpu-dark": _memory_gpu_dark,
    "memory-150": _memory_gpu,
    "memory-keys": _memory_keys,
    "memory-compact": _memory_compact,
    "memory-empty": _memory_empty,
    "memory-question": _memory_question,
    "marks": _marks,
    "refused": _refused,
    "unloaded": _unloaded,
}
