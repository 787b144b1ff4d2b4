"""How are shares of a step drawn? Bars and columns as SVG text, no script, no library.

Fill is a presentation attribute on every shape, so colours survive a policy that forbids style
sheets; the class beside it lets the page recolour for a dark screen. Hatching is the second cue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from analyzer.render.format import (
    HIDDEN,
    LOOKS,
    StepScale,
    clean,
    look,
    percent,
    shorten,
    significant,
)

INK, MUTED, LINE = "#1B1F24", "#59636E", "#D9DEE4"
WIDTH = 1000
_LABEL, _VALUE = 112, 88
_DARK = {"t": ("fill", "#E6EAEF"), "m": ("fill", "#9AA5B1"), "l": ("stroke", "#303841")}
_HATCHES = {
    "wide": ("8", "rotate(45)", '<path d="M0 0V8" stroke="#FFF" stroke-width="3" class="h"/>'),
    "dense": ("4", "rotate(-45)", '<path d="M0 0V4" stroke="#FFF" stroke-width="2.4" class="h"/>'),
    "light": ("6", "rotate(45)", '<path d="M0 0V6" stroke="#FFF" stroke-width="1.6" class="h"/>'),
    "dots": ("6", "", '<circle cx="3" cy="3" r="1.3" fill="#FFF" class="d"/>'),
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One horizontal bar: milliseconds by class, and communication hidden beside its compute."""

    label: str
    ms: Mapping[str, float]
    hidden_ms: float = 0.0


def dark_rules() -> Markup:
    """CSS that recolours the charts for a dark page, made from the one palette."""
    rules = [f".{name}{{{prop}:{value}}}" for name, (prop, value) in _DARK.items()]
    hues = [*LOOKS.items(), ("hidden", HIDDEN)]
    rules += [f".c-{name}{{fill:{item.dark}}}" for name, item in hues if item.hatch != "outline"]
    rules += [".c-unexplained{stroke:#DADEE5}", ".h{stroke:#111418}", ".d{fill:#111418}"]
    rules += [f".s-{name}{{stroke:{LOOKS[name].dark}}}" for name in ("comm_transfer", "copy")]
    rules += [".s-ink{stroke:#E6EAEF}", ".f-ink{fill:#E6EAEF}"]
    return Markup("".join(rules))


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, *, anchor: str = "start", muted: bool = False) -> str:
    """A line of 13-pixel text."""
    fill, name = (MUTED, "m") if muted else (INK, "t")
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return (
        f'<text x="{number(x)}" y="{number(y)}" fill="{fill}" class="{name}"{place}>'
        f"{escape(clean(words))}</text>"
    )


def drawing(
    ident: str, title: str, desc: str, *, height: float, body: str, width: int = WIDTH
) -> Markup:
    """The SVG element around `body`, named for screen readers; `ident` is unique in the page."""
    return Markup(
        f'<svg role="img" aria-labelledby="{ident}-t {ident}-d" width="{width}"'
        f' height="{number(height)}" viewBox="0 0 {width} {number(height)}"'
        f' font-family="system-ui, sans-serif" font-size="13">'
        f'<title id="{ident}-t">{escape(clean(title))}</title>'
        f'<desc id="{ident}-d">{escape(clean(desc))}</desc>{body}</svg>'
    )


def standalone(svg: Markup) -> str:
    """The same drawing as a file of its own, following the reader's theme."""
    style = f"<style>@media (prefers-color-scheme: dark){{{dark_rules()}}}</style>"
    opened = str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return opened.replace("<title ", style + "<title ", 1)


def nothing(ident: str) -> Markup:
    """A drawing that says there is nothing to draw."""
    words = "No time was measured."
    body = text(0, 20, words)
    return drawing(f"{ident}-none", words, words, height=30, body=body)


def defs(ident: str, names: set[str]) -> str:
    """The patterns of these hatches, to be placed once in the drawing `ident`."""
    patterns = []
    for name in sorted(names & _HATCHES.keys()):
        size, turn, mark = _HATCHES[name]
        turned = f' patternTransform="{turn}"' if turn else ""
        patterns.append(
            f'<pattern id="{ident}-{name}" width="{size}" height="{size}"'
            f' patternUnits="userSpaceOnUse"{turned}>{mark}</pattern>'
        )
    return f"<defs>{''.join(patterns)}</defs>" if patterns else ""


def segment(ident: str, class_id: str, box: tuple[float, float, float, float]) -> str:
    """A rectangle (x, y, width, height) in the hue and hatch of a class."""
    item = HIDDEN if class_id == "hidden" else look(class_id)
    name = class_id if class_id == "hidden" or class_id in LOOKS else "unexplained"
    x, y, width, height = (number(value) for value in box)
    place = f'x="{x}" y="{y}" width="{width}" height="{height}"'
    if item.hatch == "outline":
        return f'<rect {place} fill="none" stroke="{item.light}" class="c-{name}"/>'
    base = f'<rect {place} fill="{item.light}" class="c-{name}"/>'
    if not item.hatch:
        return base
    return f'{base}<rect {place} fill="url(#{ident}-{item.hatch})"/>'


def shown_classes(rows: Sequence[Mapping[str, float]]) -> list[str]:
    """Class ids with any time in `rows`, in the order of the palette, unknown ids last."""
    seen = {name for row in rows for name, ms in row.items() if ms > 0}
    return [name for name in LOOKS if name in seen] + sorted(seen - LOOKS.keys())


def legend(ident: str, entries: Sequence[tuple[str, str]]) -> tuple[str, float]:
    """Swatches with their words, four to a line, and where the drawing goes on below them."""
    parts = []
    for index, (class_id, words) in enumerate(entries):
        x, y = (index % 4) * (WIDTH / 4), (index // 4) * 24
        parts.append(segment(ident, class_id, (x + 0.5, y + 2, 12, 12)))
        parts.append(text(x + 20, y + 13, shorten(words, 36)))
    return "".join(parts), 24 * ((len(entries) + 3) // 4) + 10


def hatches(classes: Sequence[str]) -> set[str]:
    """The hatches these classes need."""
    return {HIDDEN.hatch if name == "hidden" else look(name).hatch for name in classes}


def stacked_bars(
    ident: str, bars: Sequence[Bar], *, title: str, desc: str, scale: StepScale
) -> Markup:
    """One bar per row on one axis; the first bar is the total and its values are the legend."""
    classes = shown_classes([bar.ms for bar in bars])
    total = sum(bars[0].ms.values())
    entries = [
        (name, f"{look(name).label} {scale.ms(bars[0].ms.get(name, 0.0))}") for name in classes
    ]
    if bars[0].hidden_ms > 0:
        entries.append(("hidden", f"{HIDDEN.label} {scale.ms(bars[0].hidden_ms)}"))
    used = [name for name, _ in entries]
    key, y = legend(ident, entries)
    longest = max(total, *(sum(bar.ms.values()) for bar in bars)) or 1.0
    pixels = (WIDTH - _LABEL - _VALUE) / longest
    parts = [defs(ident, hatches(used)), key]
    for index, bar in enumerate(bars):
        height = 30.0 if index == 0 else 16.0
        middle = y + height / 2 + 4.5
        parts.append(text(0, middle, shorten(bar.label, 16)))
        x = float(_LABEL)
        for name in classes:
            width = bar.ms.get(name, 0.0) * pixels
            if width > 0:
                parts.append(segment(ident, name, (x, y, width, height)))
            x += width
        if bar.hidden_ms > 0:
            own = (bar.ms.get("compute", 0.0) + bar.ms.get("optimizer", 0.0)) * pixels
            width = min(own, bar.hidden_ms * pixels)
            strip = (_LABEL + own - width, y + height * 0.68, width, height * 0.32)
            parts.append(segment(ident, "hidden", strip))
        parts.append(text(WIDTH, middle, scale.ms(sum(bar.ms.values())), anchor="end", muted=True))
        y += height + (14 if index == 0 else 6)
    return drawing(ident, title, desc, height=y + 2, body="".join(parts))


def step_strip(
    ident: str,
    steps: Sequence[tuple[str, Mapping[str, float]]],
    *,
    median_ms: float,
    title: str,
    desc: str,
    scale: StepScale,
) -> Markup:
    """One column per step, stacked by class from zero, with the median step as a line."""
    classes = shown_classes([ms for _, ms in steps])
    tallest = max(median_ms, *(sum(ms.values()) for _, ms in steps)) or 1.0
    tall, top = 120.0, 8.0
    slot = (WIDTH - _LABEL - _VALUE) / len(steps)
    wide = min(72.0, slot * 0.8)
    parts = [defs(ident, hatches(classes))]
    every = max(1, len(steps) // 16)
    for index, (label, ms) in enumerate(steps):
        x, y = _LABEL + index * slot + (slot - wide) / 2, top + tall
        for name in classes:
            height = ms.get(name, 0.0) / tallest * tall
            if height > 0:
                parts.append(segment(ident, name, (x, y - height, wide, height)))
            y -= height
        if index % every == 0:
            parts.append(text(x + wide / 2, top + tall + 18, label, anchor="middle", muted=True))
    level = top + tall - median_ms / tallest * tall
    parts.append(
        f'<path d="M{_LABEL} {number(level)}H{WIDTH - _VALUE}" stroke="{INK}" class="s-ink"'
        ' stroke-width="1.2" stroke-dasharray="5 4"/>'
    )
    parts.append(text(0, level + 4.5, "median"))
    parts.append(text(WIDTH, level + 4.5, scale.ms(median_ms), anchor="end", muted=True))
    parts.append(text(0, top + tall + 18, "step"))
    return drawing(ident, title, desc, height=top + tall + 26, body="".join(parts))


def share_bar(
    class_id: str, share: float, largest: float, bounds: tuple[float, float] | None = None
) -> Markup:
    """A thin bar for a table cell, full width at the `largest` share of the table, with a line
    from bound to bound where there is an interval.
    """
    item = look(class_id)
    wide = number(max(1.0, 120 * share / largest)) if largest > 0 else "1"
    name = class_id if class_id in LOOKS else "unexplained"
    line = ""
    if bounds is not None and largest > 0:
        low, high = (number(min(120.0, max(0.0, 120 * part / largest))) for part in bounds)
        line = f'<path d="M{low} 5H{high}" stroke="{INK}" stroke-width="2" class="s-ink"/>'
    return Markup(
        f'<svg role="img" aria-label="{percent(share)} of the step" width="120" height="10"'
        f' viewBox="0 0 120 10"><rect width="120" height="10" fill="{LINE}" class="b"/>'
        f'<rect width="{wide}" height="10" fill="{item.light}" class="c-{name}"/>{line}</svg>'
    )


def axis_value(value: float) -> str:
    """A speedup on an axis."""
    return f"{significant(value)}x" if value < 1 else f"{value:,.0f}x"
