"""`parse`: a ``ShieldSidecarConfig`` from JSON, or everything that is wrong with it."""

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Final

from shield_operator import names
from shield_operator.model.core_types import (
    DNS_LABEL,
    SUBDOMAIN,
    VALUE,
    VARIABLE,
    environment,
    items,
    label_selector,
    resources,
    variable_name,
)
from shield_operator.model.formats import Json, is_dns_label, is_image_digest
from shield_operator.model.reader import Check, Reader, shown, text_of
from shield_operator.model.resource import (
    EVERYTHING,
    Application,
    Argument,
    BaseUrl,
    ConfigRef,
    ImagePullPolicy,
    InvalidConfig,
    Mode,
    Payload,
    SecretMount,
    SecurityContext,
    ShieldConfig,
)
from shield_operator.model.scheduling import scheduling
from shield_operator.model.sharing import frugal


def parse(resource: Json) -> ShieldConfig | InvalidConfig:
    """Read a ``ShieldSidecarConfig`` as the API server or a YAML file gives it; never raises.

    Unknown fields are problems like any other: a config that asks for something it would not get
    must not look accepted.
    """
    problems: list[str] = []
    if not isinstance(resource, Mapping):
        problems.append(f"the {names.KIND} is {shown(resource)}: it must be an object")
        resource = {}
    root = Reader({**resource, "spec": frugal(resource.get("spec"))}, "", problems)
    root.leave("apiVersion", "kind", "metadata", "status")
    ref, generation = _metadata(root.raw.get("metadata"))
    if "spec" not in root:
        root.problem("spec", "is missing: give at least its image")
    spec = root.object("spec")
    selector = label_selector(spec.object("podSelector"))
    if problems:  # so far, they are all about how to get at the selector
        selector = EVERYTHING
    config = replace(_spec(spec, ref), generation=generation, pod_selector=selector)
    root.nothing_else()
    if problems:
        return InvalidConfig(
            ref=ref, generation=generation, problems=tuple(problems), pod_selector=selector
        )
    return config


def _metadata(metadata: Json) -> tuple[ConfigRef, int | None]:
    """What we need of it; the API server vouches for it, and a file may leave it out."""
    fields = metadata if isinstance(metadata, Mapping) else {}
    namespace, name = (
        value if isinstance(value := fields.get(key), str) else "" for key in ("namespace", "name")
    )
    generation = fields.get("generation")
    return ConfigRef(namespace, name), generation if type(generation) is int else None


def _spec(spec: Reader, ref: ConfigRef) -> ShieldConfig:
    wiring = spec.object_if_given("application")
    application = _application(wiring) if wiring is not None else None
    staged = spec.object_if_given("payload")
    payload = _payload(staged, application) if staged is not None else None
    placement = spec.object_if_given("scheduling")
    config = ShieldConfig(
        ref=ref,
        image=spec.string("image", _IMAGE),
        secret_name=spec.string("secretName", SUBDOMAIN),
        image_pull_policy=spec.choice("imagePullPolicy", ImagePullPolicy)
        or ImagePullPolicy.IF_NOT_PRESENT,
        image_pull_secrets=_image_pull_secrets(spec),
        port=spec.integer("port", 1, 65535) or names.PORT,
        args=spec.strings("args", 64, text_of(4096)),
        env=environment(spec, "env"),
        resources=resources(spec.object("resources")),
        mode=spec.choice("mode", Mode) or Mode.AUTO,
        security_context=_security_context(spec.object("securityContext")),
        secret_mounts=_secret_mounts(spec),
        application=application,
        payload=payload,
        scheduling=scheduling(placement) if placement is not None else None,
    )
    spec.nothing_else()
    return config


# --- The sidecar ----------------------------------------------------------------------------------

_IMAGE: Final = Check(
    "an image with its digest (…@sha256:<64 hex digits>); a tag alone can move",
    is_image_digest,
    512,
)


def _image_pull_secrets(spec: Reader) -> tuple[str, ...]:
    secrets = []
    for entry in spec.objects("imagePullSecrets", 16, unique="name"):
        secrets.append(entry.string("name", SUBDOMAIN, required=True))
        entry.nothing_else()
    return tuple(name for name in secrets if name)


class _SeccompProfileType(StrEnum):
    RUNTIME_DEFAULT = "RuntimeDefault"
    LOCALHOST = "Localhost"


_PROFILE: Final = Check(
    "a relative path without '..'",
    lambda text: text != "" and not text.startswith("/") and ".." not in text.split("/"),
    1024,
)


def _security_context(context: Reader) -> SecurityContext:
    seccomp = context.object_if_given("seccompProfile")
    if seccomp is not None:
        kind = seccomp.choice("type", _SeccompProfileType, required=True)
        seccomp.string("localhostProfile", _PROFILE)
        if kind and (kind is _SeccompProfileType.LOCALHOST) != ("localhostProfile" in seccomp):
            seccomp.problem(
                "localhostProfile",
                "goes with type Localhost, and only with it: set both or neither",
            )
        seccomp.nothing_else()
    read = SecurityContext(
        run_as_user=context.integer("runAsUser", 1, 2**31 - 1),
        run_as_group=context.integer("runAsGroup", 0, 2**31 - 1),
        seccomp_profile=seccomp.raw if seccomp is not None else None,
    )
    context.nothing_else()
    return _AS_IT_COMES if read == _AS_IT_COMES else read


_AS_IT_COMES: Final = SecurityContext()
"""Most configs choose nothing: one of it for all of them."""


# --- Folders --------------------------------------------------------------------------------------

_CLEAN_PATH: Final = re.compile(r"(/[^/:\s]+)+", re.ASCII)
_MOUNT_PATH: Final = Check(
    "an absolute path like /etc/certs, without '.', '..', ':', spaces, or a slash at the end",
    lambda text: _CLEAN_PATH.fullmatch(text) is not None and not {".", ".."} & set(text.split("/")),
    1024,
)
_VOLUME_SUFFIX: Final = Check("a DNS label of at most 45 characters", is_dns_label, 45)


def _mount_path(reader: Reader, *, required: bool = False) -> str | None:
    """A ``mountPath`` that meets none of the folders that the operator itself mounts."""
    path = reader.string("mountPath", _MOUNT_PATH, required=required)
    if path == names.TMP_PATH:
        reader.problem("mountPath", f"is {path}, which containers write to: use another path")
    elif path and (
        _contains(names.TOKEN_MOUNT_PATH, path) or _contains(path, names.TOKEN_MOUNT_PATH)
    ):
        reader.problem(
            "mountPath",
            f"is {shown(path)}, which meets the service account token's folder "
            f"{names.TOKEN_MOUNT_PATH}: use another path",
        )
    return path


def _contains(folder: str, path: str) -> bool:
    """Whether `path` is that folder or lies inside it."""
    return f"{path}/".startswith(f"{folder}/")


def _secret_mounts(spec: Reader) -> tuple[SecretMount, ...]:
    mounts: list[SecretMount] = []
    for entry in spec.objects("secretMounts", 16, unique="name"):
        name = entry.string("name", _VOLUME_SUFFIX, required=True)
        secret = entry.string("secretName", SUBDOMAIN, required=True)
        path = _mount_path(entry)
        if "mountPath" not in entry:
            path = f"{names.SECRETS_PATH}/{name}"
        files = items(entry, "items")
        entry.nothing_else()
        if name and secret and path:
            mount = SecretMount(name, secret, path, files)
            for other in mounts:
                if name != other.name and _meet(mount, other):
                    entry.problem(
                        "mountPath",
                        f"is {shown(path)}, and secretMount {other.name} is at "
                        f"{shown(other.mount_path)}: give each a folder of its own",
                    )
            mounts.append(mount)
    return tuple(mounts)


def _meet(one: SecretMount, other: SecretMount) -> bool:
    return _contains(one.mount_path, other.mount_path) or _contains(
        other.mount_path, one.mount_path
    )


def _payload(payload: Reader, application: Application | None) -> Payload | None:
    image = payload.string("image", _IMAGE, required=True)
    path = _mount_path(payload, required=True)
    command = payload.strings("command", 64, text_of(4096))
    path_env = payload.string("pathEnv", VARIABLE)
    if path_env is not None and application is not None and path_env in application.variables:
        payload.problem(
            "pathEnv", f"is {shown(path_env)}, which application sets: give it there or here"
        )
    payload.nothing_else()
    return Payload(image, path, command, path_env) if image and path else None


# --- The application ------------------------------------------------------------------------------

_FLAG_PATTERN: Final = re.compile(r"--?[^-\s=][^\s=]*", re.ASCII)
_FLAG: Final = Check(
    "a flag like --seed; what follows it goes into value",
    lambda text: _FLAG_PATTERN.fullmatch(text) is not None,
    253,
)
_URL_PATH_PATTERN: Final = re.compile(r"/\S*", re.ASCII)
_URL_PATH: Final = Check(
    "a path like /v1, without spaces",
    lambda text: _URL_PATH_PATTERN.fullmatch(text) is not None,
    1024,
)


def _application(application: Reader) -> Application:
    arguments = []
    entries = application.objects("args", 64, unique="name")
    flags = [entry.string("name", _FLAG, required=True) for entry in entries]
    for flag, entry in zip(flags, entries, strict=True):
        value = entry.string("value", VALUE)
        entry.nothing_else()
        if flag:
            arguments.append(Argument(flag, value))
        if value is not None and value in flags:
            entry.problem("value", f"is {shown(value)}, another argument's name: nobody could tell")
    env = application.objects("env", 128, unique="name")
    variables = set()
    for entry in env:
        variables.add(variable_name(entry))
        entry.string("value", VALUE)
        entry.nothing_else()
    urls = []
    for entry in application.objects("baseUrlEnv", 16, unique="name"):
        variable, path = variable_name(entry), entry.string("path", _URL_PATH)
        entry.nothing_else()
        if variable:
            urls.append(BaseUrl(variable, path or ""))
            if variable in variables:
                entry.problem("name", f"is {shown(variable)}, as in application.env: keep one")
    read = Application(
        container=application.string("container", DNS_LABEL),
        args=tuple(arguments),
        env=tuple(entry.raw for entry in env),
        base_url_env=tuple(urls),
        host_ipc=application.boolean("hostIPC"),
    )
    application.nothing_else()
    return read
