"""Where the operator finds its API server, and who it is there."""

import os
from dataclasses import dataclass
from pathlib import Path

import yaml
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client import Configuration

from shield_operator.cluster.errors import NoCredentials


async def find_configuration(
    kubeconfig: str | None = None, context: str | None = None
) -> Configuration:
    """Credentials from where kubectl and client-go look for them, or from this file."""
    configuration = Configuration()
    try:
        asked = kubeconfig or context or os.environ.get("KUBECONFIG")
        if not asked and in_a_pod():
            kubernetes_config.load_incluster_config(client_configuration=configuration)
        else:
            await kubernetes_config.load_kube_config(
                _kubeconfig(kubeconfig), context=context, client_configuration=configuration
            )
    except (kubernetes_config.ConfigException, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise NoCredentials(f"no credentials for an API server: {why}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # the loader trusts its file
        file = _kubeconfig(kubeconfig)
        raise NoCredentials(
            f"no credentials for an API server: {file} is not a kubeconfig ({error})"
        ) from error
    return configuration


def in_a_pod() -> bool:
    """Whether a kubelet has told us where its API server is."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _kubeconfig(given: str | None) -> str:
    """The kubeconfig file, or several with the system's path separator between them."""
    paths = given or os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
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
