"""Models are chosen and given back from the top bar; what was typed and sent is not lost by it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt

from app.connections.models import ModelConnections
from app.library.loaded import ModelPhase
from tests.helpers.fake_engine import Script
from tests.helpers.qt import press, wait_until
from tests.helpers.window import TestWindow


def test_another_model_is_found_by_its_name_and_loaded_and_a_draft_stays(tmp_path: Path) -> None:
    window = TestWindow(tmp_path, Script(load_s=0.2)).started()
    (window.places.models / "other-one.gguf").write_bytes(b"GGUF")
    window.page.composer.set_draft("half a sentence")
    models = window.whole.findChild(ModelConnections)
    assert models is not None
    window.window.bar.name.click()
    wait_until(models.picker.isVisible)
    assert models.picker.list.count() == 2
    assert "loaded" in " ".join(models.picker.list.item(n).text() for n in range(2))
    models.picker.line.setText("OTHER")
    assert models.picker.list.count() == 1
    press(models.picker.line, Qt.Key.Key_Return, "\r")
    assert not models.picker.isVisible()
    wait_until(lambda: window.model().phase is ModelPhase.LOADING)
    wait_until(lambda: window.model().phase is ModelPhase.READY)
    assert window.model().name == "other-one"
    assert window.page.composer.draft() == "half a sentence"
    window.close()


def test_a_model_that_was_given_back_comes_with_the_next_message(tmp_path: Path) -> None:
    window = TestWindow(tmp_path).started()
    window.window.bar.eject.click()
    wait_until(lambda: window.model().phase is ModelPhase.UNLOADED)
    assert not window.window.bar.eject.isVisible()
    window.ask("are you there")
    assert window.model().phase is ModelPhase.READY
    window.close()
