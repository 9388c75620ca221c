"""How often something may be done: some at once, and so many a second in the long run."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Allowance:
    """A bucket of turns: full at first, filled up as time goes by, one taken out for each turn."""

    burst: float
    """Turns at once."""
    a_second: float
    since: float
    """Now, in seconds from anywhere."""
    left: float = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.burst

    def take(self, now: float) -> bool:
        """Whether it may be done once more now; then that turn is taken."""
        self.left = min(self.burst, self.left + (now - self.since) * self.a_second)
        self.since = now
        if self.left < 1:
            return False
        self.left -= 1
        return True
