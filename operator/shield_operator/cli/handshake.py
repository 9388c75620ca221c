"""A TLS connection to the webhook, from here: where it is called by URL, and not in the cluster."""

import asyncio
import base64
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from shield_operator import raw
from shield_operator.diagnosis import Connection, Served, is_called_by_url
from shield_operator.model import Json

_CONNECTING: Final = 5.0
"""Seconds."""


async def connect(webhooks: Json) -> Connection | None:
    """Connect to the webhook as the API server does; None where it is not called by URL."""
    url = is_called_by_url(webhooks)
    if url is None:
        return None
    hook = raw.items(webhooks, "webhooks")[0]
    bundle = str(raw.mapping(hook, "clientConfig").get("caBundle") or "")
    address = urlsplit(url)
    try:
        trusting = ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        return Connection(Served.NOT_TRUSTED, f"the CA bundle holds no certificate ({error})")
    try:
        async with asyncio.timeout(_CONNECTING):
            _, writer = await asyncio.open_connection(
                address.hostname, address.port or 443, ssl=trusting
            )
    except ssl.SSLCertVerificationError as error:
        return Connection(Served.NOT_TRUSTED, error.verify_message)
    except (OSError, TimeoutError) as error:
        return Connection(Served.OUT_OF_REACH, str(error) or "no answer")
    certificate: Any = writer.get_extra_info("peercert")
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    seconds = ssl.cert_time_to_seconds(certificate["notAfter"])
    return Connection(Served.TRUSTED, until=datetime.fromtimestamp(seconds, UTC))
