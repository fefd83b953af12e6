"""What a chat says of its own replies: system prompt, preset, how they are drawn, thinking. Pure.

``None`` everywhere means: as everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from app.chat.conversation import Conversation
from app.chat.store import Store
from app.settings.sampling import Preset, SamplingSettings
from engine.protocol import Sampling

PLAIN = SamplingSettings()
"""Nothing is said of how replies are drawn."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The options of one chat.

    Attributes:
        system: the system prompt; None leaves it to the template.
        preset: the name of the preset that was chosen last.
        thinking: whether the model thinks before a reply, None as it likes.
    """

    system: str | None = None
    preset: str | None = None
    sampling: SamplingSettings = PLAIN
    thinking: bool | None = None

    def on(self, conversation: Conversation) -> Conversation:
        """``conversation`` with these options."""
        return replace(
            conversation,
            system=self.system,
            preset=self.preset,
            sampling=None if self.sampling == PLAIN else self.sampling,
            thinking=self.thinking,
        )

    def following(self, preset: Preset | None) -> ChatOptions:
        """These with what ``preset`` says; None goes back to what holds everywhere."""
        if preset is None:
            return replace(self, system=None, preset=None, sampling=PLAIN)
        return replace(self, system=preset.system, preset=preset.name, sampling=preset.sampling)

    def as_preset(self, name: str) -> Preset:
        """What a preset called ``name`` would keep of these."""
        return Preset(name=name, system=self.system, sampling=self.sampling)


NONE = ChatOptions()
"""Everything is as everywhere else."""


def options_of(conversation: Conversation) -> ChatOptions:
    """The options that a stored chat has."""
    return ChatOptions(
        system=conversation.system,
        preset=conversation.preset,
        sampling=conversation.sampling or PLAIN,
        thinking=conversation.thinking,
    )


def keep_options(store: Store, conversation: int, options: ChatOptions) -> None:
    """Write the options of a chat into the store."""
    store.conversations.set_system(conversation, options.system)
    table = store.options
    table.set_preset(conversation, options.preset)
    table.set_sampling(conversation, None if options.sampling == PLAIN else options.sampling)
    table.set_thinking(conversation, options.thinking)


def sampling_of(own: SamplingSettings | None, general: Sampling) -> Sampling:
    """How a reply is drawn: ``own`` where it says something, else ``general``."""
    names = (field.name for field in msgspec.structs.fields(SamplingSettings))
    said = {name: getattr(own or PLAIN, name) for name in names}
    return msgspec.structs.replace(
        general, **{name: value for name, value in said.items() if value is not None}
    )
