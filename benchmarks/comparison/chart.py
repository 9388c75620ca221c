"""The figures as SVG: what each webhook adds to the creation of a pod, and its throughput.

One drawing for light and dark pages: the colours change with the reader's.
"""

from collections.abc import Sequence
from typing import Any, Final
from xml.sax.saxutils import escape

from benchmarks.comparison import bars
from benchmarks.comparison.figures import Figure, figure
from benchmarks.comparison.peers import OURS, TITLES

_WIDTH: Final = 800
_LEFT: Final = 300
_RIGHT: Final = 110
_ROW: Final = 26
_HEAD: Final = 44
_STYLE: Final = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 14px; }
  .bar { fill: #8c959f; } .ours { fill: #0969da; } .spread { stroke: #1f2328; stroke-width: 1.5; }
  .page { fill: #ffffff; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .bar { fill: #6e7681; } .ours { fill: #4493f8; }
    .spread { stroke: #e6edf3; } .page { fill: #0d1117; }
  }
"""


def draw(results: Any) -> str:
    """The whole drawing."""
    added = {
        name: figure(stored)
        for name in TITLES
        if (stored := results["api"]["plain/1"][name]["added_p50_ms"])
    }
    throughput = {
        name: figure(stored)
        for name in TITLES
        if (stored := results["direct"][name]["plain/16"]["per_second"])
    }
    first = _panel("Added to the creation of a pod, p50 in ms (less is better)", added, ".2f", 0)
    height = _HEAD + _ROW * len(added) + 16
    second = _panel("Reviews per second and process, 16 clients", throughput, ",.0f", height)
    whole = height + _HEAD + _ROW * len(throughput) + 12
    return "\n".join(
        (
            '<svg xmlns="http://www.w3.org/2000/svg" role="img"',
            f'  width="{_WIDTH}" height="{whole}" viewBox="0 0 {_WIDTH} {whole}"',
            f'  aria-label="{escape(_spoken(results))}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="page" width="{_WIDTH}" height="{whole}"/>',
            *first,
            *second,
            "</svg>",
            "",
        )
    )


def _panel(title: str, of: dict[str, Figure], form: str, top: int) -> Sequence[str]:
    most = max([one.high for one in of.values()] + [1e-9])
    scale = (_WIDTH - _LEFT - _RIGHT) / most
    lines = [f'<text class="title" x="16" y="{top + 28}">{escape(title)}</text>']
    for number, (name, one) in enumerate(of.items()):
        y = top + _HEAD + _ROW * number
        kind = "ours" if name == OURS else "bar"
        low, high = (_LEFT + max(value, 0) * scale for value in (one.low, one.high))
        width = max(one.median, 0) * scale
        lines += [
            f'<text x="{_LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(TITLES[name])}</text>',
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width:.1f}" height="18" rx="2"/>',
            f'<line class="spread" x1="{low:.1f}" x2="{high:.1f}" y1="{y + 9}" y2="{y + 9}"/>',
            f'<text x="{max(high, _LEFT + width) + 8:.1f}" y="{y + 14}">{one.median:{form}}</text>',
        ]
    return lines


def _spoken(results: Any) -> str:
    parts = []
    for name, title in TITLES.items():
        value = bars.added(results, name)
        parts.append(f"{title}: {'none' if value is None else format(value, '.2f')} ms")
    return "Added to the creation of a pod. " + ", ".join(parts)
