"""The settings page: every field can be set, and what is set is told as a whole record."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QLineEdit, QWidget

from app.look.accent import contrast, with_accent
from app.look.tokens import DARK, LIGHT, Tokens
from app.pages.settings.controls import ACCENTS
from app.pages.settings.fields import Field, Wanted, sections
from app.pages.settings.folders import FolderControl
from app.pages.settings.page import SettingsPage
from app.pages.settings.switch import SwitchButton
from app.settings.record import Settings, WindowSettings
from app.settings.sampling import Preset
from tests.unit.app.conftest import Stage

NOT_ON_THE_PAGE = {"sampling", "window", "presets"}
"""Set where they are used: in the panel of a chat, and by moving the window."""


class Told:
    """The page, and what it told."""

    def __init__(self, stage: Stage) -> None:
        self.settings: list[Settings] = []
        self.now = Settings()
        self.page = SettingsPage(stage.look, stage.icons, lambda: self.now, stage.window)
        self.wanted: list[Wanted] = []
        self.page.changed.connect(self._on_changed)
        self.page.wanted.connect(self.wanted.append)

    def _on_changed(self, settings: Settings) -> None:
        self.settings.append(settings)
        self.now = settings

    def show(self, settings: Settings) -> None:
        """Show ``settings`` as if somebody else had set them."""
        self.now = settings
        self.page.refresh()

    def part(self, name: str) -> QWidget:
        """What the keyboard reaches of a field's control."""
        part = self.page.controls[name].focusProxy()
        assert part is not None
        return part


@pytest.fixture
def told(stage: Stage) -> Told:
    made = Told(stage)
    made.page.refresh()
    return made


def test_every_setting_is_on_the_page(told: Told) -> None:
    fields = {field.name for field in msgspec.structs.fields(Settings)}
    assert set(told.page.controls) == fields - NOT_ON_THE_PAGE
    assert set(told.page.buttons) == set(Wanted)


def test_showing_settings_tells_of_no_change(told: Told) -> None:
    told.show(Settings(theme="dark", text_scale=1.5, states_quota_gb=12.5, language="fr"))
    assert told.settings == []
    box = told.part("language")
    assert isinstance(box, QComboBox) and box.currentText() == "fr"


def test_each_change_is_told_with_all_the_others(told: Told) -> None:
    told.show(Settings(auto_titles=False))
    theme, switch, line = told.part("theme"), told.part("full_width"), told.part("default_model")
    assert isinstance(theme, QComboBox) and isinstance(switch, SwitchButton)
    assert isinstance(line, QLineEdit)
    theme.setFocus()
    QTest.keyClick(theme, Qt.Key.Key_Down)
    theme.activated.emit(theme.currentIndex())
    switch.click()
    QTest.keyClicks(line, "Qwen 3.5 4B")
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert told.settings[-1] == Settings(
        auto_titles=False, theme="light", full_width=True, default_model="Qwen 3.5 4B"
    )
    line.clear()
    QTest.keyClick(line, Qt.Key.Key_Return)
    assert told.settings[-1].default_model is None


@pytest.mark.parametrize(
    ("name", "shown", "value"),
    [
        ("text_scale", 150.0, 1.5),
        ("states_quota_gb", 0.0, 0.0),
        ("states_quota_gb", -1.0, None),
        ("states_quota_gb", 20.0, 20.0),
    ],
)
def test_a_number_is_kept_in_the_unit_of_the_record(
    told: Told, name: str, shown: float, value: float | None
) -> None:
    told.show(Settings(states_quota_gb=5.0))
    spin = told.part(name)
    assert isinstance(spin, QDoubleSpinBox)
    spin.setValue(shown)
    assert getattr(told.settings[-1], name) == value
    told.show(told.settings[-1])
    assert spin.value() == shown


def test_folders_are_added_once_and_removed(told: Told) -> None:
    control = told.page.controls["model_folders"]
    assert isinstance(control, FolderControl)
    control.put("/models/a")
    control.put("/models/b")
    control.put("/models/a")
    assert list(told.settings[-1].model_folders) == ["/models/a", "/models/b"]
    away = next(w for w in control.findChildren(QWidget) if w.toolTip() == "Remove /models/a")
    QTest.mouseClick(away, Qt.MouseButton.LeftButton)
    assert list(told.settings[-1].model_folders) == ["/models/b"]


def test_buttons_ask_for_what_they_say(told: Told) -> None:
    for wanted, button in told.page.buttons.items():
        button.click()
        assert told.wanted[-1] is wanted


def test_every_control_has_a_name_and_says_what_it_does(told: Told) -> None:
    rows = [row for section in sections(()) for row in section.rows]
    for row in rows:
        if isinstance(row, Field):
            part = told.part(row.name)
            assert row.title in (part.accessibleName(), part.accessibleDescription())
    names = [button.accessibleName() for button in told.page.buttons.values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("accent", [*ACCENTS, "#FFFF00", "#000000", "#FFFFFF", "#808080"])
def test_whatever_the_accent_texts_in_it_can_be_read(tokens: Tokens, accent: str) -> None:
    made = with_accent(tokens, accent)
    for fill in (made.accent, made.accent_hover, made.accent_pressed):
        assert contrast(made.on_accent, fill) >= 4.5
    grounds = (made.window, made.base, made.surface, made.bubble, made.selected)
    assert min(contrast(made.accent_text, ground) for ground in (*grounds, made.pressed)) >= 4.5
    assert contrast(made.on_accent_soft, made.accent_soft) >= 4.5
    assert contrast(made.text, made.accent_soft) >= 4.5
    assert min(contrast(made.accent, ground) for ground in grounds) >= 3
    assert min(contrast(made.focus, ground) for ground in grounds) >= 3


def test_an_accent_that_can_be_seen_is_kept_as_it_is() -> None:
    assert with_accent(LIGHT, "#2F6FB5").accent == "#2F6FB5"
    assert with_accent(LIGHT, "#FFFF00").accent != "#FFFF00"


def test_what_others_set_meanwhile_is_not_undone(told: Told) -> None:
    told.now = Settings(presets=(Preset(name="brief"),), window=WindowSettings(x=7))
    switch = told.part("full_width")
    assert isinstance(switch, SwitchButton)
    switch.click()
    assert told.settings == [msgspec.structs.replace(told.now, full_width=True)]
