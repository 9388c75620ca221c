"""What one replica may serve, and what the API server has to trust for that.

Two rules, from which everything else follows:

1. A replica serves a leaf only when the live webhook configuration is known to carry the
   authorities that the leaf needs. Until then it goes on with the last good one.
2. An authority is published while it may still be in use: while this replica serves a leaf of it or
   will, for `OVERLAP` after that, and for `OVERLAP` after it was found in the live configuration
   without our knowing it, since another replica may serve a leaf of it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shield_operator.certificates.issuing import KeyPair, split_certificates

OVERLAP: Final = timedelta(minutes=10)
"""How long an authority is still trusted after its last use that we know of.

Replicas look at the shared Secret and at the live configuration every few seconds; a mounted Secret
reaches all nodes within two minutes.
"""


_MOST: Final = 16
"""How many authorities are published besides those served or wanted now, for each of two reasons.

Each time that somebody breaks the Secret there may be one more, and an object has a largest size.
"""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A leaf to serve with, and what must be trusted for it."""

    leaf: KeyPair
    """The certificate may be a chain."""
    needs: frozenset[bytes]
    """The authorities, PEM, that the live configuration must carry before the leaf is served."""
    authorities: tuple[bytes, ...]
    """All authorities to publish, those included."""


class Trust:
    """The part of one replica in a certificate's change; the time is passed in."""

    def __init__(self) -> None:
        self.served: Certificate | None = None
        self._next: Certificate | None = None
        self._last_use: dict[bytes, datetime] = {}
        self._strangers: dict[bytes, datetime] = {}
        """Authorities that are live and that we do not know, and since when."""
        self._bundles: tuple[frozenset[bytes], ...] | None = None

    @property
    def live(self) -> frozenset[bytes]:
        """The authorities that every webhook of the live configuration carries, as last seen."""
        return frozenset.intersection(*self._bundles) if self._bundles else frozenset()

    @property
    def lacking(self) -> tuple[bytes, ...]:
        """The authorities of what is served and of what is wanted that are not live."""
        known = [certificate for certificate in (self.served, self._next) if certificate]
        needed = (one for certificate in known for one in certificate.authorities)
        needs = frozenset().union(*(certificate.needs for certificate in known))
        return tuple(one for one in dict.fromkeys(needed) if one in needs - self.live)

    @property
    def is_served(self) -> bool:
        """Whether what is wanted is served."""
        return self._next is not None and self.served == self._next

    def want(self, certificate: Certificate, now: datetime) -> None:
        """The certificate to serve from when it may be served."""
        self._next = certificate
        self._note_use(now)

    def saw(self, ca_bundles: Collection[bytes], now: datetime) -> None:
        """The live webhook configuration was read: the CA bundle of each of our webhooks in it.

        None of them: nothing is published.
        """
        self._bundles = tuple(frozenset(split_certificates(bundle)) for bundle in ca_bundles)
        self._note_use(now)
        there: frozenset[bytes] = frozenset().union(*self._bundles)
        self._last_use = {
            one: at for one, at in self._last_use.items() if one in there or now - at < OVERLAP
        }
        strangers = there - self._last_use.keys()
        self._strangers = {one: self._strangers.get(one, now) for one in strangers}

    def serve(self, now: datetime) -> bool:
        """Serve what is wanted, where that may be; returns whether the leaf is another one now."""
        if self._next is None or not self._may_serve(self._next):
            return False
        before, self.served = self.served, self._next
        self._note_use(now)
        return before is None or before.leaf != self._next.leaf

    def authorities(self, now: datetime) -> tuple[bytes, ...]:
        """The authorities to publish; none before there is a certificate."""
        if self._next is None:
            return ()
        self._note_use(now)
        known = self._next.authorities + (self.served.authorities if self.served else ())
        used = {one: at for one, at in self._last_use.items() if one not in known}
        recent = (*_recent(used, now), *_recent(self._strangers, now))
        return tuple(dict.fromkeys((*known, *recent)))

    def _may_serve(self, certificate: Certificate) -> bool:
        if self.served is None and not self._bundles:
            # The very first start: nothing is published. (None: that is not known yet.)
            return self._bundles is not None
        if self.served is not None and certificate.needs <= self.served.needs:
            return True
        return certificate.needs <= self.live

    def _note_use(self, now: datetime) -> None:
        for certificate in (self.served, self._next):
            for one in certificate.authorities if certificate else ():
                self._last_use[one] = now
                self._strangers.pop(one, None)


def _recent(known: Mapping[bytes, datetime], now: datetime) -> list[bytes]:
    """The latest of them within the overlap, in the order in which they came to be known."""
    recent = [one for one, since in known.items() if now - since < OVERLAP]
    latest = set(sorted(recent, key=lambda one: known[one])[-_MOST:])
    return [one for one in recent if one in latest]
