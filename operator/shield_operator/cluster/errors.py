"""What can go wrong with a call to the API server.

::

ClusterError              any of them: a sentence for the log; trying again may help
 ├── Unreachable          no answer, or none in time
 ├── Forbidden            401 or 403: our account lacks a permission
 ├── NotFound             404
 ├── Conflict             409: somebody else was first; read again
 └── Refused              any other answer that is not a success
NoCredentials             neither in a cluster nor with a kubeconfig: trying again is no use
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

import aiohttp
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException


class ClusterError(Exception):
    """A call to the API server failed; the message is a sentence that says which, and why."""


class Unreachable(ClusterError):
    """There was no answer."""


class Forbidden(ClusterError):
    """The account that we use may not do this."""


class NotFound(ClusterError):
    """There is no such object, or no such resource."""


class Conflict(ClusterError):
    """The object changed, or was created, since we looked."""


class Refused(ClusterError):
    """The API server answered, and it was not what we wanted."""


class NoCredentials(Exception):
    """There is no way to reach any API server; the message says where we looked."""


OUR_RULES: Final = "; apply the RBAC rules of manifests/install.yaml"
"""What to do where the operator's account may not do something; a person has other rules."""


@contextmanager
def translated(what: str, limit: float) -> Iterator[None]:
    """Turn what the client raises into our errors.

    Args:
        what: completes the sentence "cannot …".
        limit: the seconds that the call was given, for the sentence.
    """
    try:
        yield
    except ApiException as error:
        raise error_for(error.status, error.body, what) from None
    except ConfigException as error:  # the token file, while it is being replaced
        raise Unreachable(f"cannot {what}: {error}") from error
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        why = str(error) or f"no answer within {limit:.0f} s"
        raise Unreachable(f"cannot {what}: the API server is out of reach ({why})") from error


def error_for(
    status: int | None, content: bytes | str | None, what: str, advice: str = OUR_RULES
) -> ClusterError:
    """The error for an answer, with the API server's own sentence in ours.

    Args:
        status: of the answer.
        content: of the answer.
        what: completes the sentence "cannot …".
        advice: ends it, where the account that we use may not do this.
    """
    try:
        message = json.loads(content or "")["message"]
    except (ValueError, TypeError, KeyError):
        message = f"HTTP {status}"
    sentence = f"cannot {what}: {message}"
    match status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return Forbidden(f"{sentence}{advice}")
        case HTTPStatus.NOT_FOUND:
            return NotFound(sentence)
        case HTTPStatus.CONFLICT:
            return Conflict(sentence)
        case _:
            return Refused(sentence)
