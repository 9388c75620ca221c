"""How the operator logs: one line a message, JSON or text, to standard error."""

import logging

import kopf

from shield_operator import names
from shield_operator.settings import LogFormat, Settings


def configure(settings: Settings) -> None:
    """Set up logging for the whole process."""
    formats = {LogFormat.JSON: kopf.LogFormat.JSON, LogFormat.TEXT: kopf.LogFormat.FULL}
    kopf.configure(log_format=formats[settings.log_format])
    logging.getLogger().setLevel(settings.log_level.value)
    # Kopf tells there of every admission, at INFO; ours are in the metrics, and at DEBUG.
    objects = logging.getLogger("kopf.objects")
    objects.setLevel(logging.WARNING)
    objects.addFilter(_not_a_denial)
    # Protocol errors of strangers on our ports, each with a traceback; what reaches our code is
    # caught and logged there.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)


def _not_a_denial(record: logging.LogRecord) -> bool:
    """False for what Kopf calls a permanent failure of our handler: that a pod was denied.

    Any other exception Kopf logs in other words, with its traceback.
    """
    return not record.getMessage().startswith(f"Webhook {names.HANDLER!r} failed permanently")
