"""Whether the API server trusts what the operator serves: certificates compared, not verified."""

import base64
import binascii
from collections.abc import Mapping

from shield_operator import names, raw
from shield_operator.certificates import split_certificates
from shield_operator.diagnosis.finding import Finding, bad, good
from shield_operator.model import Json


def bundles(webhooks: Json) -> Mapping[str, tuple[bytes, ...]]:
    """What the API server is told to trust, by webhook: ours only."""
    found = {}
    for hook in raw.items(webhooks, "webhooks"):
        if hook.get("name") not in (names.NAMESPACE_WEBHOOK, names.POD_WEBHOOK):
            continue
        encoded = raw.mapping(hook, "clientConfig").get("caBundle") or ""
        try:
            found[str(hook["name"])] = split_certificates(base64.b64decode(str(encoded)))
        except binascii.Error:
            found[str(hook["name"])] = ()
    return found


def authorities_of(secret: Mapping[str, bytes]) -> tuple[bytes, ...]:
    """The authorities in the operator's Secret; the first one has signed what is served."""
    return split_certificates(secret.get("ca.crt", b""))


def checked_bundle(
    title: str,
    trusted: Mapping[str, tuple[bytes, ...]],
    authorities: tuple[bytes, ...],
    where: str,
) -> Finding:
    """Whether each webhook trusts the authority of what is served."""
    advice = (
        "the operator puts it right within seconds, unless it is not running: kubectl -n "
        f"{where.removeprefix('Secret ').partition('/')[0]} logs deployment/{names.OPERATOR}"
    )
    if not authorities:
        return bad(title, f"{where} holds no ca.crt", advice)
    wrong = [hook for hook, known in trusted.items() if authorities[0] not in known]
    if wrong or not trusted:
        saw = f"that of {' and '.join(wrong) or 'no webhook'} is not the authority in {where}"
        return bad(title, saw, advice)
    more = f" (and {len(authorities) - 1} more, while they overlap)" if authorities[1:] else ""
    return good(title, f"it is the authority in {where}{more}")
