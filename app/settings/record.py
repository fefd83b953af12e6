"""Everything that a person can set, as one typed record."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from app.link.events import LoadWish
from app.settings.sampling import Preset, SamplingSettings


class WindowSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the window was; sizes in device-independent pixels, None where the system decides."""

    x: int | None = None
    y: int | None = None
    width: Annotated[int, msgspec.Meta(ge=100)] | None = None
    height: Annotated[int, msgspec.Meta(ge=100)] | None = None
    maximized: bool = False
    sidebar_width: Annotated[int, msgspec.Meta(ge=0)] | None = None
    sidebar_shown: bool = True
    conversation: int | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a person can set.

    Attributes:
        default_model: path or name of the checkpoint that is loaded at start.
        model_folders: folders besides the app's own in which checkpoints are looked for.
        theme: light, dark, or as the system is.
        text_scale: size of all text, 1 is the system's.
        states_quota_gb: most GB of kept prompt states on disk, 0 keeps none there; None takes 20,
            or a tenth of the free disk where that is less.
        allow_8bit_kv: whether K and V may be kept in 8 bits where memory is short.
        language: of the window, a tag such as "de" or "zh_CN", or as the system's is.
        accent: "#rrggbb" instead of ember, None for ember.
        send_key: what sends a message; the other one makes a new line.
        full_width: whether the transcript is as wide as the window.
        auto_titles: whether the model titles a chat after its first reply.
    """

    default_model: str | None = None
    model_folders: tuple[str, ...] = ()
    theme: Literal["system", "light", "dark"] = "system"
    text_scale: Annotated[float, msgspec.Meta(ge=0.5, le=3)] = 1.0
    states_quota_gb: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | None = None
    allow_8bit_kv: bool = False
    language: str = "system"
    accent: Annotated[str, msgspec.Meta(pattern="^#[0-9a-fA-F]{6}$")] | None = None
    send_key: Literal["enter", "ctrl+enter"] = "enter"
    full_width: bool = False
    auto_titles: bool = True
    presets: tuple[Preset, ...] = ()
    sampling: SamplingSettings = SamplingSettings()
    window: WindowSettings = WindowSettings()

    def to_wish(self) -> LoadWish:
        """How a checkpoint is loaded unless a person asks for another way."""
        return LoadWish(kv="full-or-fp8" if self.allow_8bit_kv else "full")

    @property
    def states_quota_bytes(self) -> int | None:
        """The quota of kept states, None for the engine's choice."""
        return None if self.states_quota_gb is None else round(self.states_quota_gb * 1e9)

    def engine_arguments(self) -> tuple[str, ...]:
        """What is added to the command that starts the engine."""
        quota = self.states_quota_bytes
        return () if quota is None else ("--state-quota-bytes", str(quota))
