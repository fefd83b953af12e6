"""The window backs the conversations up by itself, off the UI thread."""

from __future__ import annotations

from app.exchange.backups import Backups, is_sound
from tests.e2e.conftest import OpenWindow
from tests.helpers.qt import wait_until


def test_a_start_with_messages_makes_a_sound_backup(open_window: OpenWindow) -> None:
    first = open_window().started()
    first.ask("What is kept?")
    store_file = first.places.store_file
    assert Backups(store_file).found() == (), "there was nothing to keep at the first start"
    first.close()
    open_window().started()
    wait_until(lambda: len(Backups(store_file).found()) == 1)
    assert is_sound(Backups(store_file).found()[0][1])
