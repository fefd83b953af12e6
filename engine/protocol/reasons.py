"""Why little of a prompt was resumed from a kept state: the words of ``Finished.reason``."""

from __future__ import annotations

from typing import Final, Literal

Reason = Literal[
    "short-prompt",
    "nothing-kept",
    "no-common-prefix",
    "evicted",
    "no-room",
    "edited",
    "model-changed",
    "damaged",
    "template",
    "history-rewritten",
    "context-full",
]

REASONS: Final[dict[Reason, str]] = {
    "short-prompt": "The prompt is too short for a state to be kept inside it.",
    "nothing-kept": "Nothing is kept yet.",
    "no-common-prefix": "What is kept begins otherwise.",
    "evicted": "The state that was kept had to make room for others.",
    "no-room": "There was no room beside the kept state, so the prompt was read anew.",
    "edited": "The conversation is no longer what was kept: an earlier message was changed.",
    "model-changed": "What was kept belongs to another model, or to another version of this one.",
    "damaged": "The kept state could not be read back.",
    "template": "Earlier replies were written under another chat template.",
    "history-rewritten": "The model's chat template shows earlier messages otherwise than before.",
    "context-full": "The oldest messages no longer fit, so the rest was read anew without them.",
}
"""What each word means, in a sentence for people."""
