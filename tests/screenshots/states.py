"""The states that are pictured, and how the window gets there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication

from app.chat.blocks.inline_error import InlineError
from app.library.loaded import ModelPhase
from app.look.theme import Preference
from tests.helpers.fake_engine import Script
from tests.helpers.qt import application, run_for, turn_wheel, wait_until
from tests.helpers.window import TestWindow
from tests.screenshots.font import inter
from tests.screenshots.memory_states import MEMORY_STATES
from tests.screenshots.turn_states import TURN_STATES

SCALES = {"scale-150": "1.5", "memory-150": "1.5", "turns-150": "1.5"}
LONG = (
    "Yes. One line explains it: at 03:00:02 the clock itself wakes the machine, before any disk "
    "is touched.\n\nLook for timers that may wake it. Open the one due at 03:00 and check for "
    "WakeSystem=true. Mask it for one night, then compare the log again.\n\nIf the list names a "
    "backup timer, move it to the evening instead. The board will then stay off until you press "
    "the button, and the disks with it."
)
SLOW = Script(reply=LONG, words_per_s=30, load_s=0.05)


def _open(folder: Path, script: Script, *, model: bool = True) -> TestWindow:
    application()
    return TestWindow(folder, script, font=inter(), model=model).start()


def _half_way(folder: Path) -> TestWindow:
    made = _open(folder, SLOW)
    wait_until(made.idle)
    made.write("It still wakes after I turned off the scrub. Anything else in the log?")
    wait_until(lambda: len(made.reply_so_far()) > 160)
    return made


def _finished(folder: Path) -> TestWindow:
    made = _open(folder, Script(reply=LONG, load_s=0.05, prompt_s=0.2, words_per_s=400))
    for text in ("Cover letter, second draft", "Why does my NAS wake at 3 am?"):
        wait_until(made.idle)
        made.chats().new()
        made.write(text)
        wait_until(lambda: not made.idle())
        wait_until(made.idle)
    made.write("It still wakes after I turned off the scrub. Anything else in the log?")
    wait_until(lambda: not made.idle())
    wait_until(made.idle)
    run_for(0.1)
    return made


def _loading(folder: Path) -> TestWindow:
    made = _open(folder, Script(load_s=20, load_steps=40))
    wait_until(lambda: made.model().fraction > 0.05)
    made.write("What is the capital of France?")
    run_for(1.2)
    return made


def _empty(folder: Path) -> TestWindow:
    made = _open(folder, Script())
    wait_until(made.idle)
    wait_until(lambda: made.model().phase is ModelPhase.READY)
    return made


def _no_model(folder: Path) -> TestWindow:
    made = _open(folder, Script(), model=False)
    wait_until(made.idle)
    run_for(0.5)
    return made


def _error(folder: Path) -> TestWindow:
    made = _open(folder, Script(reply_failure="memory-refused"))
    wait_until(made.idle)
    made.write("Load the 8-bit file and continue with the roof photos.")
    wait_until(lambda: not made.idle())
    wait_until(made.idle)
    run_for(0.1)
    return made


def _died(folder: Path) -> TestWindow:
    once = str(folder / "died")
    script = Script(reply=LONG, words_per_s=200, end_at="reply", end_after=20, once=once)
    made = _open(folder, script)
    wait_until(made.idle)
    made.write("Why does my NAS wake at 3 am?")
    wait_until(lambda: not made.idle())
    wait_until(made.idle)
    wait_until(lambda: made.model().phase is ModelPhase.READY)
    run_for(0.1)
    return made


def _details(folder: Path) -> TestWindow:
    made = _error(folder)
    card = made.page.transcript.column.blocks[-1]
    assert isinstance(card, InlineError) and card.fold is not None
    card.fold.click()
    run_for(0.1)
    return made


def _toast(folder: Path) -> TestWindow:
    made = _finished(folder)
    made.chats().trash(made.chats().entries[-1].id)
    run_for(0.3)
    return made


def _folded(folder: Path) -> TestWindow:
    made = _open(folder, Script())
    wait_until(made.idle)
    made.ask("\n".join(f"line {number} of a log" for number in range(20_000)))
    run_for(0.1)
    return made


def _right_to_left(folder: Path) -> TestWindow:
    arabic = "وصفة خبز الزعتر"
    made = _open(folder, Script(reply=f"{arabic} ({arabic}).\n\nIn English: thyme bread, 78 %."))
    wait_until(made.idle)
    made.ask(f"{arabic}؟")
    made.page.composer.field.insertPlainText(arabic)
    run_for(0.1)
    return made


def _restart(folder: Path) -> TestWindow:
    _finished(folder).close()
    made = _open(folder, Script(reply=LONG))
    wait_until(made.idle)
    wait_until(lambda: made.model().phase is ModelPhase.READY)
    run_for(0.1)
    return made


def _dark(folder: Path) -> TestWindow:
    made = _finished(folder)
    made.whole.look.prefer(Preference.DARK)
    run_for(0.1)
    return made


def _compact(folder: Path) -> TestWindow:
    made = _open(folder, Script(reply=f"{LONG}\n\n{LONG}\n\n{LONG}", words_per_s=60))
    made.whole.look.prefer(Preference.DARK)
    made.window.resize(800, 600)
    wait_until(made.idle)
    made.write("It still wakes after I turned off the scrub. Anything else in the log?")
    wait_until(lambda: len(made.reply_so_far()) > 2 * len(LONG))
    made.write("Should I also update the firmware")
    turn_wheel(made.page.transcript.viewport(), 1)
    run_for(0.1)
    return made


STATES: dict[str, Callable[[Path], TestWindow]] = {
    "loading": _loading,
    "empty": _empty,
    "no-model": _no_model,
    "half-way": _half_way,
    "finished": _finished,
    "error": _error,
    "engine-died": _died,
    "details": _details,
    "toast": _toast,
    "folded": _folded,
    "right-to-left": _right_to_left,
    "restart": _restart,
    "dark": _dark,
    "compact": _compact,
    "scale-150": _finished,
    **MEMORY_STATES,
    **TURN_STATES,
}


def make_state(name: str, picture: Path, folder: Path) -> None:
    """Bring a window into the state and take its picture."""
    made = STATES[name](folder)
    dialog = QApplication.activeModalWidget()
    picture_of = made.window.grab()
    if dialog is not None:
        # The system would put the dialog over the window; here it is painted where it would be.
        painter = QPainter(picture_of)
        place = made.window.rect().center() - dialog.rect().center()
        painter.drawPixmap(place, dialog.grab())
        painter.end()
    picture_of.save(str(picture))
    made.close()
