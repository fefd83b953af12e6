"""Every error the engine can report, as one tree.

    EngineError                      code, sentence, numbers
    ├── CheckpointError              the file cannot be used
    │   ├── CheckpointUnreadable     damaged, cut, foreign or missing
    │   ├── HubUnavailable           what was named on the hub cannot be read there
    │   ├── UnsupportedFamily        an architecture that is not in the family table
    │   └── UnsupportedFormat        a tensor format that no kernel decodes
    ├── MemoryRefused                does not fit: needed, free, who holds the rest
    ├── RequestInvalid               what was asked for makes no sense
    ├── TemplateFailed               the checkpoint's chat template did not render
    ├── StateMismatch                a kept prompt state does not belong here
    ├── DeviceLost                   the device failed; the engine must be started again
    └── ProtocolError                a frame was oversized, cut, unknown or out of order
    InvariantBroken                  a promise of our own broke; ends the stream, not the process
    └── StillHeld                    memory was not given back; closing may be tried again

A message names the thing, the number found and the number wanted. ``code`` is the wire code,
stable across versions; the app turns it into a sentence of its own where it has a better one.
"""

from __future__ import annotations

from typing import ClassVar

Number = int | float | str


class EngineError(Exception):
    """Something the engine refuses or cannot do, told in one sentence."""

    code: ClassVar[str] = "engine"

    def __init__(self, sentence: str, **numbers: Number) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.numbers: dict[str, Number] = numbers


class CheckpointError(EngineError):
    """A checkpoint cannot be used."""

    code = "checkpoint"


class CheckpointUnreadable(CheckpointError):
    """The file is damaged, cut short, of another kind or missing."""

    code = "checkpoint-unreadable"


class HubUnavailable(CheckpointError):
    """The hub cannot be reached, or does not give what was named; ``numbers`` may have status."""

    code = "hub-unavailable"


class UnsupportedFamily(CheckpointError):
    """The checkpoint's architecture is not one that Hearth knows."""

    code = "unsupported-family"


class UnsupportedFormat(CheckpointError):
    """A tensor is stored in a format that no kernel decodes."""

    code = "unsupported-format"


class MemoryRefused(EngineError):
    """The wish does not fit into a pool; ``numbers`` has needed_bytes and free_bytes."""

    code = "memory-refused"


class RequestInvalid(EngineError):
    """A request asks for something that makes no sense."""

    code = "request-invalid"


class TemplateFailed(EngineError):
    """The checkpoint's chat template raised, ran too long or wrote too much."""

    code = "template-failed"


class StateMismatch(EngineError):
    """A kept prompt state belongs to another checkpoint, build or device."""

    code = "state-mismatch"


class DeviceLost(EngineError):
    """The device or a kernel on it failed."""

    code = "device-lost"


class ProtocolError(EngineError):
    """The peer sent bytes that are not a frame of this protocol."""

    code = "protocol"


class InvariantBroken(Exception):
    """A promise of our own code was broken."""


class StillHeld(InvariantBroken):
    """Memory was not given back at the end; who holds it is named and stays on the accounts."""
