"""A thousand strings in thirty-four scripts, the same on every machine.

Letters are drawn from ranges that have been letters for long, so that every library agrees on what
they are. Besides words: code, emoji, combining marks, controls, white space, very long runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

SCRIPTS: dict[str, tuple[tuple[int, int], ...]] = {
    "latin": ((0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0x100, 0x17F)),
    "greek": ((0x391, 0x3A1), (0x3A3, 0x3CE)),
    "cyrillic": ((0x410, 0x44F), (0x450, 0x45F)),
    "armenian": ((0x531, 0x556), (0x561, 0x586)),
    "hebrew": ((0x5D0, 0x5EA),),
    "arabic": ((0x621, 0x63A), (0x641, 0x64A), (0x64B, 0x652), (0x660, 0x669)),
    "syriac": ((0x712, 0x72C), (0x730, 0x73F)),
    "thaana": ((0x780, 0x7A5), (0x7A6, 0x7B0)),
    "devanagari": ((0x905, 0x939), (0x93E, 0x94D), (0x966, 0x96F)),
    "bengali": ((0x995, 0x9A8), (0x9BE, 0x9C3), (0x9E6, 0x9EF)),
    "gurmukhi": ((0xA15, 0xA28), (0xA3E, 0xA42)),
    "gujarati": ((0xA95, 0xAA8), (0xABE, 0xAC5)),
    "oriya": ((0xB15, 0xB28), (0xB3E, 0xB43)),
    "tamil": ((0xBAE, 0xBB5), (0xBBE, 0xBC2)),
    "telugu": ((0xC15, 0xC28), (0xC3E, 0xC44)),
    "kannada": ((0xC95, 0xCA8), (0xCBE, 0xCC4)),
    "malayalam": ((0xD15, 0xD28), (0xD3E, 0xD43)),
    "sinhala": ((0xD9A, 0xDB1), (0xDCF, 0xDD4)),
    "thai": ((0xE01, 0xE30), (0xE31, 0xE3A), (0xE40, 0xE46)),
    "lao": ((0xE94, 0xE97), (0xE99, 0xE9F), (0xEB4, 0xEB9)),
    "tibetan": ((0xF49, 0xF69), (0xF71, 0xF7E)),
    "myanmar": ((0x1000, 0x1021), (0x102B, 0x1032)),
    "georgian": ((0x10D0, 0x10F0),),
    "hangul": ((0xAC00, 0xD7A3), (0x1100, 0x1112)),
    "ethiopic": ((0x1200, 0x1248),),
    "canadian": ((0x1401, 0x1676),),
    "runic": ((0x16A0, 0x16EA),),
    "khmer": ((0x1780, 0x17B3), (0x17B6, 0x17C5)),
    "mongolian": ((0x1820, 0x1842),),
    "kana": ((0x3041, 0x3096), (0x30A1, 0x30FA)),
    "han": ((0x4E00, 0x9FA5),),
    "rare han": ((0x3400, 0x4DB5), (0x20000, 0x2A6D6)),
    "gothic": ((0x10330, 0x10340),),
    "cuneiform": ((0x12000, 0x1236E),),
}
_SENTENCES = (
    "The quick brown fox can't jump; it'll rest, won't it? WE'RE DONE.",
    "Grüße aus Köln – 1.234,56 € für 3 Äpfel!",
    "L’été s’achève, n'est-ce pas ? Ça coûte 12 €.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία.",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "نص حكيم له سر قاطع وذو شأن عظيم ٢٠٢٤",
    "ऋषियों को सताने वाले दुष्ट राक्षसों का नाश हुआ।",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "いろはにほへと ちりぬるを。ＡＢＣ１２３、ｶﾀｶﾅ",
    "人人生而自由，在尊严和权利上一律平等。2024年11月30日",
    "모든 인간은 태어날 때부터 자유로우며 ㅋㅋㅋ",
    "Tiếng Việt có nhiều dấu: ă â đ ê ô ơ ư ạ ả ấ ầ",
    "x² + y³ ≤ ∑ₙ αₙ·βⁿ ⇒ ½ ≈ 0.5 ∈ ℝ, Ⅷ ⅜ ①",
    "https://example.org/a?b=c&d=%20#e user@example.org C:\\Temp\\x.txt",
    "10000000 1234567 12 3.14159 1e-10 0x1F 007 ١٢٣٤٥ १२३४",
    "don't DON'T don’t O'Neill's 'tis I'd'VE y'all'd've 'S 'T 'RE",
    "\u201cquoted\u201d \u2018single\u2019 \u2026 \u2014 \u00a0nbsp\u00a0 \u200bzero\u200b\ufeff",
    "a\u0301e\u0308\u0323o\u0302\u0301 \u1112\u1161\u11ab \u0915\u094d\u0937 \u212b \ufb01 \u2126",
    "█▓▒░ ╔══╗ ♠♣♥♦ ♪♫ ✓✗ ™®© £¥₹₿ ←↑→↓ ☃☀",
)
_CODE = (
    "def f(x: int) -> str:\n{i}return f'{{x!r}}' + \"{n}\"  # {w}\n",
    "for (int i = 0; i < {n}; ++i) {{\r\n{i}a[i] += b[i] * {n}.5f;\r\n}}\r\n",
    "SELECT {w}, COUNT(*) FROM t WHERE id >= {n} AND name LIKE '%{w}%';",
    "<div class=\"{w}\"><a href='/{n}'>&nbsp;{w}</a><!-- {n} --></div>",
    'fn main() {{{i}let v: Vec<&\'static str> = vec!["{w}"; {n}]; println!("{{:?}}", v); }}',
    '{{"{w}": [{n}, null, true, -{n}e+3], "k\\n": "\\u00e9"}}',
    "\t\tif [[ $x == *{w}* ]]; then\n\t\t\techo \"${{x//{w}/_}}\" | awk '{{print ${n}}}'\n\t\tfi",
    "|{w}|{n}|\n|---|:--:|\n- [ ] **{w}** _{n}_ `x+=1`\n\n\n1. ~~{w}~~\n",
)
_PEOPLE = "👩👨🧑👧👦"
_EMOJI = "🙂🎉🔥🚀❤☺✈🏳🌈🐻❄🇩🇪🇯🇵👍🧠🫠"
_JOINS = ("\u200d", "\ufe0f", "🏽", "", " ", "\u200d♀️")
_MARKS = (0x300, 0x36F)
_SPACES = " \t\n\r\u00a0\u2003\u3000\u2028\u0085\u000b\u000c"
_CONTROLS = "\x00\x01\x07\x08\x1b\x7f\u0080\u009f\u200e\u202e\u2066\ufffd\ufffe\U000e0001\U0010fffd"
_RUNS = (
    "a",
    " ",
    "\n",
    "=",
    "中",
    "🙂",
    "\t",
    "ab",
    "e\u0301",
    "9",
    "- ",
    "\r\n",
    "аб",
    "!?",
    "zzz ",
)
RUN_LENGTH = 3000
COUNT = 1000


class _Draw:
    """A linear congruential generator (Knuth's MMIX numbers): the same for every Python."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, bound: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._state >> 33) % bound

    def of(self, choices: str | tuple[str, ...]) -> str:
        return choices[self.below(len(choices))]

    def letter(self, ranges: tuple[tuple[int, int], ...]) -> str:
        first, last = ranges[self.below(len(ranges))]
        return chr(first + self.below(last - first + 1))

    def word(self, ranges: tuple[tuple[int, int], ...], longest: int = 9) -> str:
        return "".join(self.letter(ranges) for _ in range(1 + self.below(longest)))


def thousand_strings() -> tuple[str, ...]:
    """All of them, in a fixed order."""
    draw = _Draw(20)
    made = [*_SENTENCES, *(run * (RUN_LENGTH // len(run)) for run in _RUNS)]
    made += [_text(draw, ranges) for ranges in SCRIPTS.values() for _ in range(20)]
    made += islice(_others(draw), COUNT - len(made))
    return tuple(made)


def _text(draw: _Draw, ranges: tuple[tuple[int, int], ...]) -> str:
    """Some words of a script with what stands between words."""
    between = (" ", " ", " ", ", ", ". ", "  ", "\n", "-", " 12 ", "\u200c", "!\n\n", " (", ") ")
    parts = [draw.word(ranges) + draw.of(between) for _ in range(1 + draw.below(8))]
    return draw.of(("", "", " ", "\n")) + "".join(parts)


def _others(draw: _Draw) -> Iterator[str]:
    """Code, emoji, marks, controls, white space and mixtures, in turn, without end."""
    mixed = tuple(SCRIPTS.values())
    while True:
        indent = " " * draw.below(9) or "\t"
        word, number = draw.word(SCRIPTS["latin"][:2]), str(draw.below(10 ** (1 + draw.below(9))))
        yield draw.of(_CODE).format(i=indent, n=number, w=word)
        yield "".join(draw.of(_PEOPLE + _EMOJI) + draw.of(_JOINS) for _ in range(9))
        yield "".join(
            draw.letter(mixed[0]) + draw.word((_MARKS,), 4) for _ in range(1 + draw.below(6))
        )
        yield "".join(draw.of(_SPACES + _CONTROLS + "ab1.") for _ in range(1 + draw.below(20)))
        yield "".join(
            draw.of(("x", "1", ".", "\u00e9")) + draw.of(_SPACES) * (1 + draw.below(7))
            for _ in range(1 + draw.below(5))
        )
        yield "".join(draw.word(mixed[draw.below(len(mixed))], 3) for _ in range(6))
