# SPDX-License-Identifier: Apache-2.0
"""LDraw colour codes. Transparent and metallic colours count as plain ones of the same value."""

from __future__ import annotations

import re

from bricksim_core.parts import Color

INHERITED = 16
"""The code that means: as the line that refers to this model says."""
UNCOLORED: Color = (127, 127, 127)
"""What code 16 shows where nothing is inherited."""

_SOLID = """
0 05131D  1 0055BF  2 237841  3 008F9B  4 C91A09  5 C870A0  6 583927  7 9BA19D  8 6D6E5C  9 B4D2E3
10 4B9F4A  11 55A5AF  12 F2705E  13 FC97AC  14 F2CD37  15 FFFFFF  17 C2DAB8  18 FBE696  19 E4CD9E
20 C9CAE2  22 81007B  23 2032B0  25 FE8A18  26 923978  27 BBE90B  28 958A73  29 E4ADC8  30 AC78BA
31 E1D5ED  68 F3CF9B  69 CD6298  70 582A12  71 A0A5A9  72 6C6E68  73 5C9DD1  74 73DCA1  77 FECCCF
78 F6D7B3  84 CC702A  85 3F3691  86 7C503A  89 4C61DB  92 D09168  100 FEBABD  110 4354A3
112 6874CA  115 C7D23C  118 B3D7D1  120 D9E4A7  125 F9BA61  151 E6E3E0  191 F8BB3D  212 86C1E1
216 B31004  226 FFF03A  232 56BED6  272 0D325B  288 184632  308 352100  313 54A9C8  320 720E0F
321 1498D7  322 3EC2DD  323 BDDCD8  326 DFEEA5  330 9B9A5A  335 D67572  351 F785B1  366 FA9C1C
373 845E84  378 A0BCAC  379 597184  450 B67B50  462 FFA70B  484 A95500  503 E6E3DA
"""
_OTHER = """
33 0020A0  34 237841  35 56E646  36 C91A09  37 DF6695  38 FF800D  39 C1DFF0  40 635F52  41 559AB7
42 C0FF00  43 AEE9EF  44 96709F  45 FC97AC  46 F5CD2F  47 FCFCFC  52 A5A5CB  54 DAB000  57 F08F1C
60 645A4C  61 6C96BF  62 3CB371  63 AA4D8E  64 1B2A34  334 BBA53D  383 E0E0E0
134 964A27  135 9CA3A8  137 5677BA  142 DCBE61  148 575857  150 BBBDBC  178 B4883E  179 898788
183 F2F3F2  297 CC9C2B  80 A5A9B4  81 899B5F  82 8C5C20  83 1A2831  87 6D6E5C  79 FFFFFF  21 E0FFB0
294 BDC6AD  114 DF6695  117 FFFFFF  129 640061  132 000000  133 000000
"""

_DIRECT = 0x2000000
"""Direct colours are 0x2RRGGBB (opaque) and 0x3RRGGBB (transparent)."""
_CODE = re.compile(r"\d{1,10}|(0x|#)[0-9a-f]{7}", re.IGNORECASE | re.ASCII)
_VALUE = re.compile(r"#(?P<value>[0-9a-f]{6})", re.IGNORECASE | re.ASCII)


def _rgb(value: int) -> Color:
    return (value >> 16 & 0xFF, value >> 8 & 0xFF, value & 0xFF)


def _entries(table: str) -> dict[int, Color]:
    words = table.split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return {int(code): _rgb(int(value, 16)) for code, value in pairs}


COLORS = _entries(_SOLID) | _entries(_OTHER)
"""Colours by code."""
_CODES = {color: code for code, color in reversed(_entries(_SOLID).items())}


def color_code(text: str) -> int | None:
    """The number of a colour field, None if it is not one."""
    if not _CODE.fullmatch(text):
        return None
    return int(text) if text.isdecimal() else int(text.lower().removeprefix("0x").lstrip("#"), 16)


def color_of(code: int, defined: dict[int, Color]) -> Color | None:
    """The colour of a code, None if it is not known.

    Args:
        code: A code or a direct colour.
        defined: Codes that the file itself defines.
    """
    if code in defined:
        return defined[code]
    if code >> 25 == 1:
        return _rgb(code)
    return COLORS.get(code)


def definition(words: list[str]) -> tuple[int, Color] | None:
    """Code and colour of the words after ``0 !COLOUR``, None if they are not a definition."""
    fields = dict(zip((w.upper() for w in words[1::2]), words[2::2], strict=False))
    value = _VALUE.fullmatch(fields.get("VALUE", ""))
    code = fields.get("CODE", "")
    if value is None or not (code.isascii() and code.isdecimal() and len(code) < 10):
        return None
    return int(code), _rgb(int(value["value"], 16))


def color_text(color: Color) -> str:
    """How a colour is written: the code of the palette, else a direct colour."""
    code = _CODES.get(color)
    if code is not None:
        return str(code)
    red, green, blue = color
    return f"0x{_DIRECT | red << 16 | green << 8 | blue:07X}"
