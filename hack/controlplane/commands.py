"""How each program is started: the files and flags of one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "127.0.0.1"

CONTROLLERS = (
    "clusterrole-aggregation-controller",  # without it, `view`, `edit` and `admin` allow nothing
    "cronjob-controller",
    "daemonset-controller",
    "deployment-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "statefulset-controller",
)
"""What runs by default: who makes pods and who cleans up. Nodes, volumes and scaling are absent."""

_SERVICE_RANGE = "198.18.0.0/16"  # RFC 2544: addresses for benchmarks, nobody's network
_ETCD = "unix://etcd.sock:0"  # a file of that name in the run's folder; etcd wants the ":0"


@dataclass(frozen=True)
class Layout:
    """Where one run of the control plane has its files, its address and its port."""

    directory: Path
    port: int
    address: str = ADDRESS

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://{self.address}:{self.port}"

    @property
    def ca_file(self) -> Path:
        """PEM certificate of the authority that signed the API server's."""
        return self.directory / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.directory / "admin.kubeconfig"

    @property
    def signing_key(self) -> Path:
        """PEM key that signs service accounts' tokens."""
        return self.directory / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        """The API server's static token file."""
        return self.directory / "tokens.csv"

    @property
    def certificates(self) -> Path:
        """Folder in which the API server makes `apiserver.crt`, then `apiserver.key`."""
        return self.directory / "certificates"


def etcd(program: Path, layout: Layout) -> list[str]:
    """Return etcd's command; its socket, which asks for no credentials, is in the run's folder."""
    return [
        str(program),
        f"--data-dir={layout.directory / 'etcd'}",
        f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}",
        f"--listen-peer-urls=http://{ADDRESS}:0",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(program: Path, layout: Layout, more: Sequence[str]) -> list[str]:
    """Return kube-apiserver's command; of a flag given twice, `more` has the last word."""
    return [
        str(program),
        f"--etcd-servers={_ETCD}",
        f"--bind-address={layout.address}",
        f"--secure-port={layout.port}",
        "--permit-port-sharing",
        f"--advertise-address={layout.address}",
        # Loopback is refused as the address of the `kubernetes` service; do without.
        "--endpoint-reconciler-type=none",
        f"--cert-dir={layout.certificates}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.signing_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        "--allow-privileged",
        "--profiling=false",
        "--shutdown-delay-duration=0s",
        *more,
    ]


def controller_manager(program: Path, layout: Layout, controllers: Sequence[str]) -> list[str]:
    """Return kube-controller-manager's command; it serves nothing and needs no lease."""
    return [
        str(program),
        f"--kubeconfig={layout.kubeconfig}",
        f"--controllers={','.join(controllers)}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--root-ca-file={layout.ca_file}",
        f"--service-account-private-key-file={layout.signing_key}",
        # The default of 20 requests a second would make tests wait for pods and cleanup.
        "--kube-api-qps=200",
        "--kube-api-burst=400",
    ]
