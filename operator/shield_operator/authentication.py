"""Who may ask the webhook: the API server's token, and the authority of its client certificate.

Both are files or settings of ours and, on the other side, of the API server's own admission
configuration (docs/authentication.md). Kubernetes:
https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#authenticate-apiservers
"""

import hmac
import logging
from pathlib import Path

from shield_operator.certificates import CertificateError, split_certificates
from shield_operator.settings import Settings, SettingsError, is_token
from shield_operator.tls import check_authorities

logger = logging.getLogger(__name__)


class Authentication:
    """What a request must bring. Where the settings ask for nothing, everybody may ask.

    A file that changes counts from the next look on: who takes a token out of it wants it not to
    be accepted any more. While tokens change, the file holds both, one a line. A file that cannot
    be read or holds nothing of use leaves everything as it was.

    Raises:
        SettingsError: where a file is of no use at the start. Nothing is served without it.
    """

    def __init__(self, settings: Settings) -> None:
        self._token_file = _path(settings.webhook_auth_token_file)
        self._client_ca_file = _path(settings.webhook_client_ca_file)
        self._tokens: tuple[bytes, ...] = ()
        if settings.webhook_auth_token is not None:
            self._tokens = (settings.webhook_auth_token.encode("ascii"),)
        self.client_authorities: bytes | None = None
        """PEM; where there are any, a client must have a certificate of one of them."""
        self._complaints: tuple[str, ...] = ()
        if problems := self._look():
            raise SettingsError(problems)

    async def refresh(self) -> None:
        """Read the files again."""
        problems = self._look()
        for problem in problems:
            if problem not in self._complaints:
                logger.warning("%s; what was read before goes on to count", problem)
        self._complaints = problems

    def admits(self, authorization: str | None) -> bool:
        """Whether a request with this ``Authorization`` header may ask; takes the same time always.

        https://www.rfc-editor.org/rfc/rfc6750#section-2.1
        """
        if not self._tokens:
            return True
        scheme, _, given = (authorization or "").partition(" ")
        token = given.strip().encode("utf-8", "replace")
        same = [hmac.compare_digest(token, one) for one in self._tokens]
        return any(same) and scheme.lower() == "bearer"

    def _look(self) -> tuple[str, ...]:
        """Take over what the files hold; returns what is wrong with them."""
        problems = []
        if self._token_file is not None:
            try:
                self._tokens = _read_tokens(self._token_file)
            except _UselessFileError as error:
                problems.append(f"K8S_WEBHOOK_AUTH_TOKEN_FILE is {self._token_file}: {error}")
        if self._client_ca_file is not None:
            try:
                self.client_authorities = _read_authorities(self._client_ca_file)
            except _UselessFileError as error:
                problems.append(f"WEBHOOK_CLIENT_CA_FILE is {self._client_ca_file}: {error}")
        return tuple(problems)


class _UselessFileError(Exception):
    """Why a file is of no use; never with what is in it."""


def _read_tokens(path: Path) -> tuple[bytes, ...]:
    lines = [line.strip() for line in _read(path).decode("utf-8", "replace").splitlines()]
    tokens = [line for line in lines if line]
    if not tokens:
        raise _UselessFileError("it holds no token")
    if not all(map(is_token, tokens)):
        raise _UselessFileError(
            "a line of it is not a bearer token, of ASCII characters without spaces"
        )
    return tuple(token.encode("ascii") for token in tokens)


def _read_authorities(path: Path) -> bytes:
    found = split_certificates(_read(path))
    if not found:
        raise _UselessFileError("it holds no certificate")
    authorities = b"".join(found)
    try:
        check_authorities(authorities)
    except CertificateError as error:
        raise _UselessFileError(f"a certificate in it cannot be used: {error}") from error
    return authorities


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _UselessFileError(f"it cannot be read: {error.strerror}") from error


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
