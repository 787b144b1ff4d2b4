"""Colours that touch must differ by 20 (CIEDE2000) for every kind of colour vision, and stand out
by 3:1 from the page. Simulation: Machado, Oliveira and Fernandes 2009, full severity.
"""

from __future__ import annotations

from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt

import pytest

from analyzer.render.format import HIDDEN, LOOKS

Color = tuple[float, float, float]
VISION: dict[str, tuple[Color, Color, Color]] = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
LIGHT = sorted({item.light for item in (*LOOKS.values(), HIDDEN)})
DARK = sorted({item.dark for item in (*LOOKS.values(), HIDDEN)})


def linear(color: str) -> Color:
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts
    )
    return red, green, blue


def times(matrix: tuple[Color, Color, Color], color: Color) -> Color:
    x, y, z = (sum(a * b for a, b in zip(row, color, strict=True)) for row in matrix)
    return x, y, z


def seen(color: str, vision: str) -> Color:
    red, green, blue = (min(1.0, max(0.0, part)) for part in times(VISION[vision], linear(color)))
    return red, green, blue


def lab(color: Color) -> Color:
    xyz = times(
        (
            (0.4124564, 0.3575761, 0.1804375),
            (0.2126729, 0.7151522, 0.0721750),
            (0.0193339, 0.1191920, 0.9503041),
        ),
        color,
    )
    x, y, z = (
        part ** (1 / 3) if part > 216 / 24389 else (24389 / 27 * part + 16) / 116
        for part in (value / white for value, white in zip(xyz, (0.95047, 1, 1.08883), strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def hue(a: float, b: float) -> float:
    return degrees(atan2(b, a)) % 360


def ciede2000(first: Color, second: Color) -> float:
    (l1, a1, b1), (l2, a2, b2) = first, second
    mean_c7 = ((hypot(a1, b1) + hypot(a2, b2)) / 2) ** 7
    stretch = 1.5 - 0.5 * sqrt(mean_c7 / (mean_c7 + 25**7))
    c1, c2 = hypot(stretch * a1, b1), hypot(stretch * a2, b2)
    h1, h2 = hue(stretch * a1, b1), hue(stretch * a2, b2)
    turn = h2 - h1
    if c1 * c2 == 0:
        turn = 0
    elif abs(turn) > 180:
        turn -= 360 if turn > 0 else -360
    around = h1 + h2
    if c1 * c2 != 0:
        if abs(h1 - h2) > 180:
            around += 360 if around < 360 else -360
        around /= 2
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1
        - 0.17 * cos(radians(around - 30))
        + 0.24 * cos(radians(2 * around))
        + 0.32 * cos(radians(3 * around + 6))
        - 0.20 * cos(radians(4 * around - 63))
    )
    s_l = 1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2)
    d_l = (l2 - l1) / s_l
    d_c = (c2 - c1) / (1 + 0.045 * chroma)
    d_h = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * chroma * t)
    rotate = -2 * sqrt(chroma**7 / (chroma**7 + 25**7))
    rotate *= sin(radians(60 * exp(-(((around - 275) / 25) ** 2))))
    return sqrt(d_l**2 + d_c**2 + d_h**2 + rotate * d_c * d_h)


def contrast(first: str, second: str) -> float:
    bright, dim = sorted(
        (sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(color), strict=True)))
        for color in (first, second)
    )[::-1]
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize(
    "first, second, distance",
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.49, -0.001), (50.0, -2.49, 0.0009), 7.1792),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_distance_agrees_with_the_published_pairs(
    first: Color, second: Color, distance: float
) -> None:
    assert ciede2000(first, second) == pytest.approx(distance, abs=5e-5)


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_pair_of_hues_is_told_apart(palette: list[str], vision: str) -> None:
    close = {
        pair: ciede2000(lab(seen(pair[0], vision)), lab(seen(pair[1], vision)))
        for pair in combinations(palette, 2)
    }
    assert {pair: far for pair, far in close.items() if far < 20} == {}


@pytest.mark.parametrize("palette, page", [(LIGHT, "#FFFFFF"), (DARK, "#111418")])
def test_every_hue_stands_out_from_the_page(palette: list[str], page: str) -> None:
    assert [color for color in palette if contrast(color, page) < 3] == []


def test_classes_that_share_a_hue_differ_in_hatch() -> None:
    marks = [(item.light, item.hatch) for item in (*LOOKS.values(), HIDDEN)]
    same = [mark for mark in marks if marks.count(mark) > 1]
    assert same == []
