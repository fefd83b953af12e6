"""A disk that is really full: the process may not write files beyond a size (RLIMIT_FSIZE)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.chat.store import open_store

PROGRAM = """
import resource, signal, sys
from pathlib import Path
from app.chat.store import open_store
from app.chat.storage.blobs import BlobFolder
from app.errors import StoreError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, limit = Path(sys.argv[1]), int(sys.argv[2])
store = open_store(path).store
chat = store.conversations.create()
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
leaf = None
try:
    for number in range(200):
        leaf = store.turns.add_user(chat.id, leaf, f"{number} " + "x" * 3000).id
        print("stored", number, flush=True)
except StoreError as error:
    print("refused", error.sentence, flush=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.turns.add_user(chat.id, leaf, "room again")
print("again", flush=True)
store.close()
"""


@pytest.mark.parametrize("limit", [40_000, 100_000, 180_001])
def test_what_does_not_fit_is_refused_and_the_rest_stays(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "chats.sqlite3"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, str(limit)], check=True, capture_output=True
    )
    lines = ended.stdout.decode().splitlines()
    stored = [line for line in lines if line.startswith("stored")]
    (refused,) = [line for line in lines if line.startswith("refused")]
    assert lines[-1] == "again", "it works again once there is room"
    assert str(tmp_path) in refused
    with open_store(path).store as store:
        chat = store.conversations.read(store.conversations.entries()[0].id)
        store.turns._database.check()
    assert [t.text.split()[0] for t in chat.path()[:-1]] == [line.split()[1] for line in stored]
    assert chat.path()[-1].text == "room again"
