"""The two colour themes as records: every colour the window uses, by the name of its purpose.

Only records; nothing here knows Qt. Values and names are those of the visual reference; a test
computes every contrast again from this file.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tokens:
    """One theme. Each field is a colour as ``#rrggbb``, named after where it is used."""

    dark: bool
    # Surfaces, from the back to the front.
    window: str
    base: str
    surface: str
    sunken: str
    bubble: str
    # Fills of things that can be pressed.
    button: str
    button_hover: str
    hover: str
    pressed: str
    selected: str
    # Lines; the first two carry no meaning.
    line: str
    line_strong: str
    control: str
    # Text.
    text: str
    text2: str
    disabled: str
    # The accent: only where the person acts.
    accent: str
    accent_hover: str
    accent_pressed: str
    on_accent: str
    accent_text: str
    accent_soft: str
    on_accent_soft: str
    # Outcomes, each with the fill of its chip.
    success: str
    success_soft: str
    warn: str
    warn_soft: str
    danger: str
    danger_soft: str
    selection: str
    focus: str
    track: str
    # Heat of a chat's kept state; disk and text share one colour and differ in shape.
    hot: str
    warm: str
    disk: str
    # Code, on ``sunken``.
    code_keyword: str
    code_string: str
    code_number: str
    code_name: str
    code_comment: str
    # Parts of a memory bar.
    bar_weights: str
    bar_chats: str
    bar_kept: str
    bar_pictures: str
    bar_workspace: str
    bar_other: str


LIGHT = Tokens(
    dark=False,
    window="#F2EEEA",
    base="#FCFAF8",
    surface="#FFFFFF",
    sunken="#F6F2EE",
    bubble="#F3ECE6",
    button="#EEE8E3",
    button_hover="#E5DED7",
    hover="#EBE6E1",
    pressed="#DDD6CF",
    selected="#E4DBD3",
    line="#E4DED8",
    line_strong="#CFC7BF",
    control="#827A73",
    text="#231F1C",
    text2="#615952",
    disabled="#A29A93",
    accent="#B0471B",
    accent_hover="#983B14",
    accent_pressed="#80300F",
    on_accent="#FFFFFF",
    accent_text="#A13F16",
    accent_soft="#FAECE2",
    on_accent_soft="#8A3511",
    success="#24694A",
    success_soft="#E3F0E8",
    warn="#7D5400",
    warn_soft="#F8EDD3",
    danger="#AE1F45",
    danger_soft="#FBE6EA",
    selection="#F7D3BF",
    focus="#B0471B",
    track="#E9E3DD",
    hot="#C9501B",
    warm="#A3700E",
    disk="#77706A",
    code_keyword="#8B3A8F",
    code_string="#24694A",
    code_number="#A13F16",
    code_name="#1F5F8B",
    code_comment="#6B635C",
    bar_weights="#B0471B",
    bar_chats="#C8742F",
    bar_kept="#A3700E",
    bar_pictures="#3F7A84",
    bar_workspace="#827A73",
    bar_other="#4E4843",
)

DARK = Tokens(
    dark=True,
    window="#161412",
    base="#1C1A18",
    surface="#262320",
    sunken="#141210",
    bubble="#312924",
    button="#352F2A",
    button_hover="#403934",
    hover="#2A2623",
    pressed="#39332E",
    selected="#383029",
    line="#34302C",
    line_strong="#4A443F",
    control="#887E76",
    text="#EEE9E4",
    text2="#B3A9A1",
    disabled="#6F665F",
    accent="#E27B45",
    accent_hover="#EE8F5C",
    accent_pressed="#CB6733",
    on_accent="#1E0E05",
    accent_text="#F0945F",
    accent_soft="#3C261A",
    on_accent_soft="#F7B592",
    success="#74C295",
    success_soft="#1D3227",
    warn="#E2B350",
    warn_soft="#362B14",
    danger="#F37F95",
    danger_soft="#3D1D25",
    selection="#5E3720",
    focus="#F0945F",
    track="#34302C",
    hot="#F0803F",
    warm="#D6A23C",
    disk="#958B83",
    code_keyword="#D79ADA",
    code_string="#86CBA2",
    code_number="#F0A070",
    code_name="#82BCE0",
    code_comment="#9B9189",
    bar_weights="#E27B45",
    bar_chats="#B8622C",
    bar_kept="#D6A23C",
    bar_pictures="#5FA3AE",
    bar_workspace="#887E76",
    bar_other="#A59B93",
)
