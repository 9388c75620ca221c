"""Where the operator finds its API server, and who it is there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration

from shield_operator.cluster.errors import NoCredentials


async def find_configuration() -> Configuration:
    """Credentials from where client-go looks for them; the operator's own way."""
    configuration = Configuration()
    if not os.environ.get("KUBECONFIG") and in_a_pod():
        with _one_sentence():
            kubernetes_config.load_incluster_config(client_configuration=configuration)
    else:
        with _one_sentence():
            await kubernetes_config.load_kube_config(
                _kubeconfig(None), client_configuration=configuration
            )
    return configuration


async def find_users_configuration(
    kubeconfig: str | None, context: str | None
) -> tuple[Configuration, str]:
    """Credentials from where kubectl looks for them, and the namespace that it would take.

    A file that is named beats ``KUBECONFIG``, and that ``~/.kube/config``; a pod's own account is
    for a pod without any of them.

    Raises:
        NoCredentials: where there is none of them, or no such context.
    """
    configuration = Configuration()
    named = kubeconfig or os.environ.get("KUBECONFIG")
    if not named and not _DEFAULT_KUBECONFIG.expanduser().is_file() and in_a_pod():
        with _one_sentence():
            kubernetes_config.load_incluster_config(client_configuration=configuration)
        own = _OWN_NAMESPACE.read_text(encoding="utf-8") if _OWN_NAMESPACE.is_file() else ""
        return configuration, own.strip() or "default"
    with _one_sentence(kubeconfig):
        loader = await kubernetes_config.load_kube_config(
            _kubeconfig(kubeconfig), context=context, client_configuration=configuration
        )
        chosen = loader.current_context["context"].get("namespace")
    return configuration, str(chosen or "default")


_DEFAULT_KUBECONFIG: Final = Path("~/.kube/config")
_OWN_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@contextmanager
def _one_sentence(kubeconfig: str | None = None) -> Iterator[None]:
    """Say in a sentence what the loader, which trusts its file, falls over."""
    try:
        yield
    except (kubernetes_config.ConfigException, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise NoCredentials(f"no credentials for an API server: {why}") from error
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
        raise NoCredentials(
            f"no credentials for an API server: {_kubeconfig(kubeconfig)} is not a kubeconfig "
            f"({error})"
        ) from error


def in_a_pod() -> bool:
    """Whether a kubelet has told us where its API server is."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _kubeconfig(named: str | None) -> str:
    """The kubeconfig file, or several with the system's path separator between them."""
    paths = named or os.environ.get("KUBECONFIG") or str(_DEFAULT_KUBECONFIG.expanduser())
    if not any(Path(path).is_file() for path in paths.split(os.pathsep)):
        raise NoCredentials(
            f"no credentials for an API server: this is no pod, and {paths} is no file; "
            "set KUBECONFIG to a kubeconfig"
        )
    return paths


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach the API server, for Kopf, which has a client of its own."""

    server: str
    ca_path: str | None
    insecure: bool
    token: str | None
    certificate_path: str | None
    private_key_path: str | None


async def connection_of(configuration: Configuration) -> Connection:
    """What a client of this configuration uses, with a token that was just read."""
    # "Bearer TOKEN" from a kubeconfig, "bearer TOKEN" in a cluster, None with certificates.
    header = await configuration.get_api_key_with_prefix("BearerToken") or ""
    return Connection(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        token=header.rpartition(" ")[2] or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
