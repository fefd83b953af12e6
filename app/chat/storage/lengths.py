"""How long conversations are and how quickly models have read: from the replies that are stored."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from app.chat.storage.database import Database
from engine.protocol import Timings

LEAST_READ: Final = 64
"""Fewer tokens than this say more about the start of a read than about its speed."""

RECENT: Final = 200


@dataclass(frozen=True, slots=True)
class Lengths:
    """What is known of reading conversations again.

    Attributes:
        tokens: of each conversation at the end of its newest reply, by its id.
        speeds: tokens a second that each model has read lately, by the model's name.
    """

    tokens: Mapping[int, int]
    speeds: Mapping[str, float]

    def read_s(self, conversation: int, model: str) -> float | None:
        """How long ``model`` would read a conversation; None where that cannot be told."""
        tokens, speed = self.tokens.get(conversation), self.speeds.get(model)
        return tokens / speed if tokens and speed else None


class LengthTable:
    """Reads lengths and speeds; raises StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self) -> Lengths:
        """Lengths of all conversations, and the middle speed of each model's latest reads."""
        rows = self._database.read(
            "SELECT conversation, max(turn.id),"
            " prompt_tokens + ifnull(completion_tokens, 0) AS tokens"
            " FROM turn JOIN reply ON reply.turn = turn.id"
            " WHERE prompt_tokens IS NOT NULL GROUP BY conversation"
        )
        tokens = {row["conversation"]: row["tokens"] for row in rows}
        speeds: dict[str, list[float]] = {}
        for row in self._database.read(
            "SELECT model_name, timings, prompt_tokens - ifnull(resumed_tokens, 0) AS read"
            f" FROM reply WHERE timings IS NOT NULL AND read >= {LEAST_READ}"
            f" ORDER BY turn DESC LIMIT {RECENT}"
        ):
            read_ms = msgspec.json.decode(row["timings"], type=Timings).prefill_ms
            if read_ms:
                speeds.setdefault(row["model_name"], []).append(1000 * row["read"] / read_ms)
        return Lengths(tokens, {name: statistics.median(all_) for name, all_ in speeds.items()})
