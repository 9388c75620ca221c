"""What is the same in two values."""

from shield_operator.model import Json


def same(one: Json, other: Json) -> bool:
    """Equal, where true is not one."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or one != one)  # noqa: PLR0124  # NaN


def aligned(old: list[Json], new: list[Json]) -> list[tuple[int | None, int | None]]:
    """Which items of two lists are the same thing: those of one name, else those that are equal."""
    if len(old) == len(new) and list(map(_name, old)) == list(map(_name, new)):
        return [(index, index) for index in range(len(old))]
    pairs: list[tuple[int | None, int | None]] = []
    place = 0
    for index, item in enumerate(new):
        found = next((i for i in range(place, len(old)) if _alike(old[i], item)), None)
        if found is None:
            pairs.append((None, index))
            continue
        pairs += [(gone, None) for gone in range(place, found)]
        pairs.append((found, index))
        place = found + 1
    return [*pairs, *((gone, None) for gone in range(place, len(old)))]


def _alike(one: Json, other: Json) -> bool:
    name = _name(one)
    return name == _name(other) if name is not None else same(one, other)


def _name(item: Json) -> Json:
    """The name of a list's item; None where it has none."""
    return item.get("name") if isinstance(item, dict) else None
