"""Failures as frames: any error to a code, a sentence and numbers."""

from __future__ import annotations

from typing import Final

from engine.errors import EngineError
from engine.protocol import Failure

INTERNAL: Final = "internal"


def failure_of(error: Exception, request: int | None) -> Failure:
    """The frame that tells the app about an error; ours speak for themselves."""
    if isinstance(error, EngineError):
        return Failure(
            request=request, code=error.code, sentence=error.sentence, numbers=dict(error.numbers)
        )
    return Failure(
        request=request,
        code=INTERNAL,
        sentence=f"The engine failed inside ({type(error).__name__}); its log says more.",
    )
