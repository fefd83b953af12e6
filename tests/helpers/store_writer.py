"""A process that writes conversations until it is killed, telling what it was told is stored.

Each line on stdout is one acknowledged write: ``user ID TEXT`` after a question is stored, and
``reply ID LENGTH`` after that much of a reply is. Arguments: the database file, a seed.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from app.chat.conversation import ReplyContent, ReplyFacts, TurnState
from app.chat.store import open_store


def main(path: Path, seed: int) -> None:
    """Write for ever."""
    choose = random.Random(seed)
    store = open_store(path).store
    say("ready")
    while True:
        chat = store.conversations.create()
        parent: int | None = None
        for _ in range(choose.randint(1, 4)):
            text = f"question {choose.random()}"
            asked = store.turns.add_user(chat.id, parent, text)
            say("user", asked.id, text)
            reply = store.turns.begin_reply(chat.id, asked.id, ReplyFacts(model_name="m"))
            ids: list[int] = []
            for _ in range(choose.randint(1, 6)):
                ids += range(len(ids), len(ids) + choose.randint(1, 400))
                store.turns.write_reply(reply.id, content(ids))
                say("reply", reply.id, len(ids))
            facts = ReplyFacts(model_name="m", stop_reason="end-of-turn")
            store.turns.end_reply(reply.id, TurnState.WHOLE, content(ids), facts)
            say("reply", reply.id, len(ids))
            parent = reply.id
        store.conversations.rename(chat.id, f"chat {chat.id}")
        if choose.random() < 0.2:
            store.conversations.trash(chat.id)


def content(ids: list[int]) -> ReplyContent:
    """A reply whose text is one character a token."""
    return ReplyContent("x" * len(ids), "", tuple(ids))


def say(*words: object) -> None:
    """Tell the parent."""
    print(*words, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
