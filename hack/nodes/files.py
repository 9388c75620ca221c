"""The files and flags of a node's programs."""

import json
from dataclasses import dataclass
from pathlib import Path

from nodes.machine import ADDRESS
from nodes.requirements import CNI_PLUGINS

NODE = "worker"
KUBELET_HEALTH_PORT = 10248
PAUSE_IMAGE = "llm-shield.invalid/pause:1"
_POD_RANGE = "198.19.0.0/17"  # RFC 2544: nobody's network
_NO_DNS = "198.18.0.10"  # nobody answers there: pods reach each other by their Services' addresses


@dataclass(frozen=True)
class Layout:
    """Where one node has its files."""

    directory: Path
    cgroup: str

    @property
    def containerd_root(self) -> Path:
        """Images and snapshots."""
        return self.directory / "containerd"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens; short, since a socket's path has at most 107 bytes."""
        return Path("/run/node/containerd.sock")

    @property
    def containerd_config(self) -> Path:
        """See `containerd_config`."""
        return self.directory / "containerd.toml"

    @property
    def networks(self) -> Path:
        """Folder of the CNI's configuration."""
        return self.directory / "networks"

    @property
    def kubelet_config(self) -> Path:
        """See `kubelet_config`."""
        return self.directory / "kubelet.json"

    @property
    def proxy_config(self) -> Path:
        """See `proxy_config`."""
        return self.directory / "kube-proxy.json"

    @property
    def resolv_conf(self) -> Path:
        """What pods with `dnsPolicy: Default` get."""
        return self.directory / "resolv.conf"


def write(layout: Layout, *, proxy_kubeconfig: Path) -> None:
    """Write all of a node's files."""
    layout.networks.mkdir()
    layout.resolv_conf.write_text(f"nameserver {_NO_DNS}\n", encoding="utf-8")
    layout.containerd_config.write_text(_containerd_config(layout), encoding="utf-8")
    for path, content in (
        (layout.networks / "pods.conflist", _network()),
        (layout.kubelet_config, _kubelet_config(layout)),
        (layout.proxy_config, _proxy_config(proxy_kubeconfig)),
    ):
        path.write_text(json.dumps(content, indent=2), encoding="utf-8")


def _containerd_config(layout: Layout) -> str:
    """Version 2 of the format, which containerd 1 and 2 read."""
    return f"""\
version = 2
root = "{layout.containerd_root}"
state = "/run/node/containerd"
[grpc]
  address = "{layout.containerd_socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  # Where the machine is a container itself, nobody may make a process more important.
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  disable_tcp_service = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{CNI_PLUGINS}"
  conf_dir = "{layout.networks}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{layout.directory / "opt"}"
"""


def _network() -> object:
    """Each pod by a cable to the machine, which routes: no bridge, which would need br_netfilter.

    https://www.cni.dev/plugins/current/main/ptp/
    """
    return {
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": _POD_RANGE}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }
        ],
    }


def _kubelet_config(layout: Layout) -> object:
    """https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/ ."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},  # nobody else is on this network
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{layout.cgroup}",
        "clusterDNS": [_NO_DNS],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
        "evictionHard": {},
        "failCgroupV1": False,
        "failSwapOn": False,
        "healthzPort": KUBELET_HEALTH_PORT,
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "resolvConf": str(layout.resolv_conf),
        "rotateCertificates": False,
        "serializeImagePulls": False,
        "volumePluginDir": str(layout.directory / "volume-plugins"),
    }


def _proxy_config(kubeconfig: Path) -> object:
    """https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/ ."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": ADDRESS,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": _POD_RANGE,
        # Limits of connections are the whole machine's: not ours to change.
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpCloseWaitTimeout": "0s",
            "tcpEstablishedTimeout": "0s",
        },
        "hostnameOverride": NODE,
        "mode": "iptables",
    }


def containerd(program: Path, layout: Layout) -> list[str]:
    """Return containerd's command."""
    return [str(program), "--config", str(layout.containerd_config)]


def kubelet(program: Path, layout: Layout, kubeconfig: Path) -> list[str]:
    """Return kubelet's command."""
    return [
        str(program),
        f"--config={layout.kubelet_config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NODE}",
        f"--node-ip={ADDRESS}",
        f"--cert-dir={layout.directory / 'certificates'}",
    ]


def proxy(program: Path, layout: Layout) -> list[str]:
    """Return kube-proxy's command."""
    return [str(program), f"--config={layout.proxy_config}"]


def scheduler(program: Path, kubeconfig: Path) -> list[str]:
    """Return kube-scheduler's command; it serves nothing and needs no lease."""
    return [str(program), f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]


APISERVER_ARGS = (
    "--authorization-mode=Node",  # beside RBAC: of a list, each flag adds to it
    "--enable-admission-plugins=NodeRestriction",
    "--endpoint-reconciler-type=lease",  # `kubernetes.default`, for pods
    "--kubelet-preferred-address-types=InternalIP",
)
"""Flags of an API server that has nodes."""

CONTROLLERS = (
    "*",
    "-node-ipam-controller",
    "-node-route-controller",
    "-cloud-node-lifecycle-controller",
)
"""All of them, but for what a cloud brings."""
