"""JSON as YAML that all readers read alike."""

from shield_operator.documents import scalars
from shield_operator.model import Json


def block(value: Json) -> list[str]:
    """The lines of an object or a list in block style, as kubectl writes it."""
    lines: list[str] = []
    if isinstance(value, dict) and value:
        for key, below in value.items():
            lines += _under(f"{scalars.scalar(key)}:", below)
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = block(item)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
    else:
        lines.append(flow(value) if isinstance(value, dict | list) else scalars.scalar(value))
    return lines


def _under(key: str, value: Json) -> list[str]:
    lines = block(value)
    if not isinstance(value, dict | list) or not value:
        return [f"{key} {lines[0]}"]
    indent = "" if isinstance(value, list) else "  "
    return [key, *(f"{indent}{line}" for line in lines)]


def flow(value: Json) -> str:
    """The value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalars.in_flow(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return scalars.in_flow(value)
