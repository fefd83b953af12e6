"""Turns as they are pictured: thoughts, versions, actions, another model, a reply that was cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.chat.turns.deeds import TurnVerb, TurnWish
from app.library.loaded import ModelPhase
from app.look.theme import Preference
from tests.helpers.fake_engine import Script
from tests.helpers.fake_script import Resume
from tests.helpers.qt import application, run_for, wait_until
from tests.helpers.turns import chat, hover, path, rows, session, thoughts
from tests.helpers.window import TestWindow
from tests.screenshots.font import inter

QUESTION = "Why does my NAS wake at 3 am?"
THOUGHTS = (
    "The log shows 03:00:02, and the disks spin up two seconds later. So it is the clock, not a "
    "packet from the network.\n\nA timer of the system may wake the board. Which ones can? Those "
    "with WakeSystem=true; a backup is the likely one."
)
REPLY = (
    "One line explains it: at 03:00:02 **the clock itself** wakes the machine, before any disk is "
    "touched.\n\n1. List the timers: `systemctl list-timers`\n2. Mask the one due at 03:00 for "
    "one night\n3. Compare the log again"
)
FROM_DISK = Resume(tokens=8_192, tier="disk", bytes=590_000_000, ms=200)


def _asked(folder: Path, script: Script) -> TestWindow:
    application()
    made = TestWindow(folder, script, font=inter()).start()
    wait_until(lambda: made.idle() and made.model().phase is ModelPhase.READY)
    made.write(QUESTION)
    wait_until(lambda: not made.idle())
    return made


def _thought(folder: Path) -> TestWindow:
    """Two versions of a reply with open thoughts, and what can be done with the message."""
    script = Script(reply=REPLY, thinking=THOUGHTS, words_per_s=120, resume=FROM_DISK)
    made = _asked(folder, script)
    wait_until(made.idle)
    made.page.answer_again()
    wait_until(made.idle)
    thoughts(made).head.click()
    hover(made, rows(made)[0].y() - 5)
    run_for(0.2)
    return made


def _dark(folder: Path) -> TestWindow:
    made = _thought(folder)
    made.whole.look.prefer(Preference.DARK)
    run_for(0.2)
    return made


def _thinking(folder: Path) -> TestWindow:
    made = _asked(folder, Script(reply=REPLY, thinking=THOUGHTS, words_per_s=12))
    wait_until(lambda: "thoughts" in " ".join(made.shown()))
    run_for(2.2)
    return made


def _cut(folder: Path) -> TestWindow:
    """A reply that was stopped, and then a message to another model."""
    made = _asked(folder, Script(reply=REPLY, words_per_s=60))
    wait_until(lambda: len(made.reply_so_far()) > 90)
    made.page.stop()
    wait_until(made.idle)
    other = made.places.models / "Qwen3.5-4B-Q4_K_M.gguf"
    other.write_bytes(b"GGUF")
    assert made.whole.choice is not None
    made.whole.choice.choose(str(other))
    wait_until(lambda: made.model().phase is ModelPhase.READY and "4B" in made.model().name)
    made.write("And with another model?")
    wait_until(lambda: len(made.reply_so_far()) > 90)
    made.page.stop()
    wait_until(made.idle)
    run_for(0.2)
    return made


def _about(folder: Path) -> TestWindow:
    made = _asked(folder, Script(reply=REPLY, thinking=THOUGHTS, resume=FROM_DISK))
    wait_until(made.idle)
    made.page.desk.do(session(made), TurnWish(TurnVerb.INFO, path(made)[1].id))
    run_for(0.2)
    return made


def _deleted(folder: Path) -> TestWindow:
    made = _asked(folder, Script(reply=REPLY))
    wait_until(made.idle)
    made.write("And again?")
    wait_until(lambda: not made.idle())
    wait_until(made.idle)
    made.page.desk.do(session(made), TurnWish(TurnVerb.DELETE, path(made)[2].id))
    wait_until(lambda: len(chat(made).path()) == 2)
    run_for(0.2)
    return made


TURN_STATES: dict[str, Callable[[Path], TestWindow]] = {
    "turns-thought": _thought,
    "turns-dark": _dark,
    "turns-thinking": _thinking,
    "turns-cut": _cut,
    "turns-about": _about,
    "turns-deleted": _deleted,
    "turns-150": _thought,
}
