"""A chat's own options hold for its next reply, are kept with it, and for no other chat."""

from __future__ import annotations

from pathlib import Path

from app.chat.options.record import ChatOptions
from app.connections.options import OptionConnections
from app.settings.sampling import SamplingSettings
from tests.helpers.fake_engine import Script
from tests.helpers.qt import wait_until
from tests.helpers.window import TestWindow

OPTIONS = ChatOptions(system="Be brief.", sampling=SamplingSettings(seed=41, max_tokens=3))


def test_the_options_of_a_new_chat_hold_for_its_first_reply_and_are_kept(tmp_path: Path) -> None:
    window = TestWindow(tmp_path, Script(reply="{messages} seed {seed} and more")).started()
    session = window.page.session
    assert session is not None
    session.set_options(OPTIONS)
    window.ask("hello")
    assert session.conversation is not None
    number, first = session.conversation.id, session.conversation.path()[-1]
    assert first.text.startswith("system:Be brief.|user:hello")
    assert first.reply is not None
    assert (first.reply.seed, first.reply.stop_reason) == (41, "max-tokens")
    window.chats().new()
    wait_until(lambda: window.page.session is not session)
    window.ask("other")
    other = window.page.session
    assert other is not None and other.conversation is not None
    assert other.conversation.path()[-1].text.startswith("user:other")
    window.close()
    again = TestWindow(tmp_path).started()
    again.chats().open(number)
    wait_until(lambda: again.page.session is not None and again.page.session.options == OPTIONS)
    again.close()


def test_a_chat_that_is_kept_already_takes_other_options_at_once(tmp_path: Path) -> None:
    window = TestWindow(tmp_path, Script(reply="{messages}")).started()
    window.ask("one")
    session = window.page.session
    assert session is not None
    session.set_options(ChatOptions(system="Later."))
    window.ask("two")
    assert session.conversation is not None
    assert session.conversation.path()[-1].text.startswith("system:Later.|")
    window.close()


def test_the_tokens_of_what_is_typed_are_counted_by_the_engine(tmp_path: Path) -> None:
    window = TestWindow(tmp_path).started()
    composer = window.page.composer
    composer.field.insertPlainText("three short words")
    assert composer.shown_hint().startswith("about ")
    wait_until(lambda: composer.shown_hint().startswith("3 tokens · < 1 % of context"))
    composer.field.clear()
    assert composer.shown_hint() == ""
    composer.field.insertPlainText("word " * 1_000_000)
    assert not composer.button.isEnabled()
    assert "too long" in composer.shown_hint()
    window.close()


def test_what_is_set_in_the_panel_holds_for_the_chat_and_nonsense_does_not(tmp_path: Path) -> None:
    window = TestWindow(tmp_path).started()
    options = window.whole.findChild(OptionConnections)
    session = window.page.session
    assert options is not None and session is not None
    assert not options.panel.isVisible()
    window.window.bar.options.click()
    assert options.panel.isVisible()
    options.panel.system.setPlainText("Be brief.")
    for name, text in (("temperature", "0,5"), ("seed", "7"), ("top_p", "4")):
        options.panel.fields[name].setText(text)
        options.panel.fields[name].editingFinished.emit()
    wanted = SamplingSettings(temperature=0.5, seed=7)
    assert session.options == ChatOptions(system="Be brief.", sampling=wanted)
    assert options.panel.fields["top_p"].text() == ""
    options.panel.fields["seed"].clear()
    options.panel.fields["seed"].editingFinished.emit()
    assert session.options.sampling.seed is None
    window.close()


def test_the_panel_leaves_the_composer_whole(tmp_path: Path) -> None:
    window = TestWindow(tmp_path).started()
    window.window.resize(1280, 800)
    options = window.whole.findChild(OptionConnections)
    assert options is not None
    before = window.page.composer.geometry()
    options.toggle()
    assert window.page.composer.geometry().right() < options.panel.x()
    options.toggle()
    assert window.page.composer.geometry() == before
    window.close()
