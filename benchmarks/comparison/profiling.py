"""Where the time of an admission goes, as cProfile counts it."""

import pstats
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.comparison import pods
from benchmarks.comparison.load import Load
from benchmarks.comparison.peers import Ours

_WAITING: Final = ("select.epoll", "run_forever", "time.sleep")
_PARTS: Final = (
    ("TLS", ("_ssl.", "sslproto.py", "/ssl.py")),
    ("sending", ("_socket.socket",)),
    ("JSON, there and back", ("/json/", "_json", "orjson", "c_make_encoder", "scanstring")),
    ("choosing, planning, patching", ("shield_operator/",)),
    ("computing the operations", ("jsonpatch.py", "jsonpointer.py")),
    ("copies", ("/copy.py", "__deepcopy__")),
    ("Kopf", ("/kopf/",)),
    ("HTTP", ("/aiohttp/", "/multidict/", "/yarl/", "/email/", "/http/", "/urllib/")),
    ("the event loop", ("/asyncio/", "selectors.py", "_asyncio", "Context", "uvloop")),
    ("logging", ("/logging/",)),
    ("metrics", ("/prometheus_client/",)),
)
"""Parts of the program, by what is in the names of their files, or of what is written in C. What
fits none, such as `isinstance`, counts where it is called."""

_REST: Final = "the rest"
_SHOWN: Final = 15
_SELDOM: Final = 0.2
"""Calls for each admission below which a function is the start's, or a loop's."""

_Function = tuple[str, int, str]
_Numbers = tuple[int, int, float, float, Mapping[_Function, tuple[int, int, float, float]]]


def profile(load: Load, start: Callable[[Path], Ours], folder: Path, total: int) -> Any:
    """Microseconds of an admission by part of the program: a run with reviews less one without."""
    idle = _profiled(load, start, folder / "idle.profile", 1)
    busy = _profiled(load, start, folder / "busy.profile", total)
    parts: dict[str, float] = {}
    functions: dict[str, float] = {}
    for (function, part), (calls, spent) in busy.items():
        calls_idle, spent_idle = idle.get((function, part), (0, 0.0))
        if calls - calls_idle < total * _SELDOM:
            continue
        each = (spent - spent_idle) * 1e6 / (total - 1)
        parts[part] = parts.get(part, 0.0) + each
        functions[function] = functions.get(function, 0.0) + each
    top = sorted(functions.items(), key=lambda item: -item[1])[:_SHOWN]
    return {"parts": parts, "functions": top, "admissions": total}


def _profiled(
    load: Load, start: Callable[[Path], Ours], file: Path, total: int
) -> dict[tuple[str, str], tuple[int, float]]:
    """Calls of each function, and seconds in it itself, by the part that they count for."""
    with start(file) as ours:
        found = load.reviews(ours, pods.plain(), seconds=300, requests=total)
        assert found["requests"] == total, found
    stats: Mapping[_Function, _Numbers] = vars(pstats.Stats(str(file)))["stats"]
    spent: dict[tuple[str, str], tuple[int, float]] = {}
    for function, part, calls, seconds in _by_part(stats):
        key = (_shown(function), part)
        calls_before, seconds_before = spent.get(key, (0, 0.0))
        spent[key] = (calls_before + calls, seconds_before + seconds)
    return spent


def _by_part(stats: Mapping[_Function, _Numbers]) -> Iterator[tuple[_Function, str, int, float]]:
    for function, (_, calls, own, _, callers) in stats.items():
        if any(mark in function[2] for mark in _WAITING):
            continue
        if part := _part(function):
            yield function, part, calls, own
            continue
        for caller, (_, calls_from, seconds, _) in callers.items():
            yield function, _part(caller) or _REST, calls_from, seconds


def _part(function: _Function) -> str | None:
    name = function[2] if function[0] == "~" else function[0]
    return next((part for part, marks in _PARTS if any(mark in name for mark in marks)), None)


def _shown(function: _Function) -> str:
    """Its name, and where it is: without the machine's own folders."""
    path, _, name = function
    return name if path == "~" else f"{'/'.join(Path(path).parts[-2:])}:{name}"
