"""The lines of the design, kept by tests: what may import what, and where the seams are."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "operator" / "shield_operator"

PURE = (
    "names",
    "settings",
    "model",
    "pods",
    "raw",
    "allowance",
    "coding",
    "arguments",
    "review",
    "selection",
    "decision",
    "drift",
    "events",
    "hearing",
    "plan",
    "patch",
    "status",
    "text",
    "webhook",
    "certificates",
    "uninjection",
    "rehearsal",
    "documents",
    "diagnosis",
    "explanation",
    "installation",
    "kinds",
    "overview",
    "remedies",
    "ownership",
)
IMPURE = ("kopf", "kubernetes", "aiohttp", "asyncio", "logging", "os", "time", "socket", "ssl")
ONLY_IMPORTERS = {
    "kubernetes": {"cluster"},
    "certbuilder": {"certificates"},
    "oscrypto": {"certificates"},
    "asn1crypto": {"certificates"},
    "kopf": {"admission", "kopf_runner", "logs", "main"},
    "prometheus_client": {"metrics"},
    "orjson": {"coding"},
    "uvloop": {"cli"},
    "ruamel": set(),  # the tests' reader of YAML 1.2
}


def modules() -> dict[str, list[Path]]:
    """The files of each module; a package counts as one."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found.setdefault(path.relative_to(PACKAGE).parts[0].removesuffix(".py"), []).append(path)
    return found


def imports(path: Path) -> set[str]:
    """What a file imports: top-level names, and our own modules by their first part."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "shield_operator":
            found |= {f"shield_operator.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def top(name: str) -> str:
    return name.split(".", maxsplit=1)[0]


@pytest.mark.parametrize("module", PURE)
def test_pure_modules_import_no_framework_client_clock_or_environment(module: str) -> None:
    for path in modules()[module]:
        assert not {top(name) for name in imports(path)} & set(IMPURE), path


@pytest.mark.parametrize("module", PURE)
def test_pure_modules_import_only_pure_modules_of_ours(module: str) -> None:
    for path in modules()[module]:
        ours = {name.split(".")[1] for name in imports(path) if top(name) == "shield_operator"}
        assert ours <= set(PURE), path


@pytest.mark.parametrize("module", PURE)
def test_pure_modules_ask_nobody_what_time_it_is(module: str) -> None:
    clocks = {"now", "utcnow", "today", "monotonic", "environ", "getenv"}
    for path in modules()[module]:
        attributes = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute)
        }
        assert not attributes & clocks, path


@pytest.mark.parametrize(("library", "importers"), ONLY_IMPORTERS.items())
def test_each_library_has_its_only_importers(library: str, importers: set[str]) -> None:
    found = {
        module
        for module, paths in modules().items()
        if any(library in {top(name) for name in imports(path)} for path in paths)
    }
    assert found == importers


def test_the_source_root_is_no_package() -> None:
    """``operator/__init__.py`` would shadow the standard library's ``operator``."""
    assert not (PACKAGE.parent / "__init__.py").exists()


def test_our_keys_are_spelled_in_one_file() -> None:
    offenders = [
        path.name
        for path in PACKAGE.rglob("*.py")
        if path.name != "names.py" and '"llm-shield.io' in path.read_text(encoding="utf-8")
    ]
    assert offenders == []
