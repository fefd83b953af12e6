"""What each token stands for: its bytes, and how a run of tokens becomes text.

Byte-level BPE spells bytes as printable characters (GPT-2's table). SPM spells a space as U+2581
and has byte tokens "<0x0A>". Markers (control and user-defined tokens) stand for their own text;
published vocabularies define runs of U+2581, which are spaces there too.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import Final, Protocol

NORMAL: Final = 1
UNKNOWN: Final = 2
CONTROL: Final = 3
USER_DEFINED: Final = 4
BYTE: Final = 6
REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_BYTE_TOKEN: Final = re.compile("<0x([0-9A-Fa-f]{2})>")
# A run of byte tokens is held until it ends, because the reference decoder judges it as a whole;
# a longer one is given piecewise so that nothing is held without bound.
_HELD_BYTES: Final = 96


def byte_table() -> dict[str, int]:
    """GPT-2's table: printable Latin-1 stands for itself, the other bytes for U+0100 and on."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in plain]
    table = {chr(byte): byte for byte in plain}
    table.update({chr(0x100 + index): byte for index, byte in enumerate(rest)})
    return table


class Pieces(Protocol):
    """The bytes of each token of one vocabulary."""

    def token_bytes(self, index: int) -> bytes:
        """The bytes that the token stands for."""

    def decoder(self) -> Decoder:
        """A fresh decoder for one run of tokens."""


class Decoder(Protocol):
    """Turns tokens, one after another, into whole characters."""

    def push(self, index: int) -> str:
        """The text that is certain after this token."""

    def finish(self) -> str:
        """The rest; what is no character by now is U+FFFD."""


class BytePieces:
    """Pieces of a byte-level vocabulary."""

    def __init__(self, tokens: Sequence[str], token_types: Sequence[int]) -> None:
        self._tokens = tokens
        self._types = token_types
        self._table = byte_table()

    def token_bytes(self, index: int) -> bytes:
        """The bytes that the token stands for."""
        token = self._tokens[index]
        if self._types[index] in (UNKNOWN, CONTROL, USER_DEFINED):
            return _utf8(token)
        try:
            return bytes([self._table[letter] for letter in token])
        except KeyError:
            return _utf8(token)

    def decoder(self) -> Decoder:
        """A fresh decoder for one run of tokens."""
        return _ByteDecoder(self)


class SpmPieces:
    """Pieces of an SPM vocabulary with byte fallback."""

    def __init__(self, tokens: Sequence[str], token_types: Sequence[int]) -> None:
        self._tokens = tokens
        self._types = token_types

    def token_bytes(self, index: int) -> bytes:
        """The bytes that the token stands for."""
        byte = self.byte(index)
        return _utf8(self.text(index)) if byte is None else bytes([byte])

    def byte(self, index: int) -> int | None:
        """The value of a byte token, None for any other."""
        found = _BYTE_TOKEN.fullmatch(self._tokens[index])
        if found is None or self._types[index] in (CONTROL, USER_DEFINED):
            return None
        return int(found.group(1), 16)

    def text(self, index: int) -> str:
        """The text of a token that is no byte token."""
        token = self._tokens[index]
        return token if self._types[index] in (UNKNOWN, CONTROL) else token.replace("\u2581", " ")

    def decoder(self) -> Decoder:
        """A fresh decoder for one run of tokens."""
        return _SpmDecoder(self)


class _ByteDecoder:
    """UTF-8 across tokens; one U+FFFD for each longest invalid start of a character."""

    def __init__(self, pieces: BytePieces) -> None:
        self._pieces = pieces
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, index: int) -> str:
        return self._utf8.decode(self._pieces.token_bytes(index))

    def finish(self) -> str:
        return self._utf8.decode(b"", final=True)


class _SpmDecoder:
    """A run of byte tokens is text if all of it is valid, else one U+FFFD a byte."""

    def __init__(self, pieces: SpmPieces) -> None:
        self._pieces = pieces
        self._run = bytearray()

    def push(self, index: int) -> str:
        byte = self._pieces.byte(index)
        if byte is None:
            return self.finish() + self._pieces.text(index)
        self._run.append(byte)
        return self._whole_part() if len(self._run) >= _HELD_BYTES else ""

    def finish(self) -> str:
        run = bytes(self._run)
        self._run.clear()
        try:
            return run.decode("utf-8")
        except UnicodeDecodeError:
            return REPLACEMENT * len(run)

    def _whole_part(self) -> str:
        """The run so far, less the start of a character at its end."""
        utf8 = codecs.getincrementaldecoder("utf-8")("strict")
        try:
            text = utf8.decode(bytes(self._run))
        except UnicodeDecodeError:
            return self.finish()
        self._run = bytearray(utf8.getstate()[0])
        return text


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")
