"""Flags in a container's arguments: how they are written, and whether one is given."""

from collections.abc import Sequence

from shield_operator.model import Argument


def spelled(flag: Argument) -> list[str]:
    """The flag as arguments: two, or one where it has no value."""
    return [flag.name] if flag.value is None else [flag.name, flag.value]


def values_of(flag: Argument, args: Sequence[str]) -> list[str | None]:
    """The values that this flag is given, as ``--flag value`` or ``--flag=value``; empty if none.

    One that has no value of ours is given None wherever it stands alone, since what follows it is
    another argument.
    """
    values: list[str | None] = []
    for index, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name != flag.name:
            continue
        if equals:
            values.append(value)
        elif flag.value is None:
            values.append(None)
        else:
            values.append("".join(args[index + 1 : index + 2]))
    return values
