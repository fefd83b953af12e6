"""How replies are drawn, as a person sets it: for all chats, for one, or as a preset."""

from __future__ import annotations

from typing import Annotated

import msgspec

from engine.protocol import Sampling

Unit = Annotated[float, msgspec.Meta(ge=0, le=1)]


class SamplingSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How replies are drawn unless a chat says otherwise; None is the checkpoint's own advice."""

    temperature: Annotated[float, msgspec.Meta(ge=0)] | None = None
    top_k: Annotated[int, msgspec.Meta(ge=0)] | None = None
    top_p: Unit | None = None
    min_p: Unit | None = None
    repetition_penalty: Annotated[float, msgspec.Meta(gt=0)] | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def to_sampling(self) -> Sampling:
        """As the engine is asked."""
        return Sampling(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty or 1.0,
            seed=self.seed,
            max_tokens=self.max_tokens,
        )

    def over(self, general: SamplingSettings) -> SamplingSettings:
        """These, and ``general``'s where nothing is set here."""
        names = (field.name for field in msgspec.structs.fields(SamplingSettings))
        own = {name: getattr(self, name) for name in names}
        return msgspec.structs.replace(
            general, **{name: value for name, value in own.items() if value is not None}
        )


class Preset(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A way of talking that a person saved: a system prompt and how replies are drawn.

    Attributes:
        system: None leaves the system prompt to the template.
    """

    name: Annotated[str, msgspec.Meta(min_length=1)]
    system: str | None = None
    sampling: SamplingSettings = SamplingSettings()
