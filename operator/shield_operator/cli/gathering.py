"""Reading what ``check`` judges. Whatever cannot be read is told as such, and the rest goes on."""

import asyncio
import os
from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from shield_operator import kinds, names, raw
from shield_operator.cli.handshake import connect
from shield_operator.cluster import ClusterError, Forbidden, NotFound, Refused, Viewer
from shield_operator.diagnosis import (
    GRANT,
    Answer,
    Facts,
    FactsBefore,
    Permission,
    Probe,
    Unseen,
    installers_permissions,
    operators_permissions,
)
from shield_operator.installation import Installation, installation_of
from shield_operator.model import Json
from shield_operator.selection import excluded_namespaces, opt_in
from shield_operator.settings import Settings

_Found = TypeVar("_Found")

_LEASE_LOOKS: Final = 6
_LEASE_PAUSE: Final = 1.0
"""Seconds between two looks at the Lease, whose holder renews it every two."""

_NOT_REACHED: Final = Unseen("the API server was not reached")

PROBE: Final[Json] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "llm-shield-check-",
        "labels": {names.INJECT_LABEL: names.IN_VALUES[1]},
    },
    # As strict and as modest as any namespace may ask for: it is never started.
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "probe",
                "image": "llm-shield-check",
                "resources": {
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
            }
        ],
    },
}


async def seen(asked: Awaitable[_Found]) -> _Found | Unseen:
    """What was asked for, or why it cannot be seen."""
    try:
        return await asked
    except ClusterError as error:
        return Unseen(str(error))


async def _read_deployment(
    viewer: Viewer, operator_namespace: str | None
) -> tuple[Json, Installation]:
    where = operator_namespace or names.OPERATOR_NAMESPACE
    deployment = await seen(viewer.find(kinds.DEPLOYMENT, names.OPERATOR, where))
    known = None if isinstance(deployment, Unseen) else deployment
    return deployment, installation_of(known, os.environ, where)


_DEFINITION: Final = f"{names.PLURAL}.{names.API_GROUP}"


async def gather(
    viewer: Viewer, operator_namespace: str | None, namespace: str | None
) -> tuple[Facts, Settings]:
    """All facts about an installation.

    Args:
        viewer: the cluster.
        operator_namespace: where the operator is installed, if not where it should be.
        namespace: where to try a pod, if not in one that asks.

    Raises:
        SettingsError: where the environment holds what cannot be used.
    """
    version = await seen(viewer.server_version())
    if isinstance(version, Unseen):
        why = _NOT_REACHED
        facts = Facts(
            version=version, definition=why, deployment=why, webhooks=why, tls_secret=why,
            answers=why, connection=why, lease=why, permissions=why, probe=why,
        )  # fmt: skip
        return facts, installation_of(None, os.environ, operator_namespace).settings
    deployment, installation = await _read_deployment(viewer, operator_namespace)
    settings = installation.settings
    webhooks = await seen(viewer.find(kinds.WEBHOOK_CONFIGURATION, names.OPERATOR))
    async with asyncio.TaskGroup() as group:
        definition = group.create_task(seen(viewer.find(kinds.DEFINITION, _DEFINITION)))
        secret = group.create_task(seen(_read_secret(viewer, settings)))
        answers = group.create_task(seen(_ask_replicas(viewer, settings)))
        permissions = group.create_task(seen(_ask_permissions(viewer, settings, deployment)))
        probe = group.create_task(seen(_try_pod(viewer, settings, namespace)))
        connection = group.create_task(connect(webhooks))
        watched = group.create_task(_watch_lease(viewer, settings))
    lease, renewed = watched.result()
    facts = Facts(
        version=version,
        definition=definition.result(),
        deployment=deployment,
        webhooks=webhooks,
        tls_secret=secret.result(),
        answers=answers.result(),
        connection=connection.result(),
        lease=lease,
        lease_renewed=renewed,
        permissions=permissions.result(),
        probe=probe.result(),
        unknown_settings=installation.unknown,
    )
    return facts, settings


async def gather_before(
    viewer: Viewer, operator_namespace: str | None
) -> tuple[FactsBefore, Settings]:
    """What matters before an installation.

    Raises:
        SettingsError: where the environment holds what cannot be used.
    """
    version = await seen(viewer.server_version())
    if isinstance(version, Unseen):
        why = _NOT_REACHED
        before = FactsBefore(
            version=version, definition=why, deployment=why, serves_webhooks=why, installer=why
        )
        return before, installation_of(None, os.environ, operator_namespace).settings
    deployment, installation = await _read_deployment(viewer, operator_namespace)
    settings = installation.settings
    wanted = (*installers_permissions(settings), *operators_permissions(settings), GRANT)
    facts = FactsBefore(
        version=version,
        definition=await seen(viewer.find(kinds.DEFINITION, _DEFINITION)),
        deployment=deployment,
        serves_webhooks=await seen(viewer.serves(kinds.WEBHOOK_CONFIGURATION)),
        installer=await seen(_ask(viewer, wanted)),
    )
    return facts, settings


# --- One by one -----------------------------------------------------------------------------------


async def _read_secret(viewer: Viewer, settings: Settings) -> Mapping[str, bytes] | None:
    try:
        data, _ = await viewer.read_tls_secret(settings.namespace, settings.tls_secret_name)
    except NotFound:
        return None
    return data


async def _ask_replicas(viewer: Viewer, settings: Settings) -> tuple[Answer, ...]:
    """What each replica answers when it is asked whether it is ready."""
    selector = f"app.kubernetes.io/name={names.OPERATOR}"
    answers = []
    for pod in await viewer.list_all(kinds.POD, settings.namespace, selector=selector):
        name = str(raw.mapping(pod, "metadata").get("name"))
        status, text = await viewer.ask_pod(
            settings.namespace, name, settings.health_port, "/readyz"
        )
        answers.append(Answer(name, status, text))
    return tuple(answers)


async def _watch_lease(viewer: Viewer, settings: Settings) -> tuple[Json, bool]:
    """The Lease, and whether its holder was seen to renew it; no clock is compared."""
    first = await seen(viewer.find(kinds.LEASE, names.OPERATOR, settings.namespace))
    if isinstance(first, Unseen) or not raw.mapping(first, "spec").get("holderIdentity"):
        return first, False
    for _ in range(_LEASE_LOOKS):
        await asyncio.sleep(_LEASE_PAUSE)
        again = await seen(viewer.find(kinds.LEASE, names.OPERATOR, settings.namespace))
        if again is None or isinstance(again, Unseen):
            return again, False
        if raw.mapping(again, "spec").get("renewTime") != raw.mapping(first, "spec").get(
            "renewTime"
        ):
            return again, True
    return first, False


async def _ask(
    viewer: Viewer, permissions: Iterable[Permission], user: Json = None
) -> dict[Permission, bool]:
    first, *rest = permissions
    answers = [await viewer.may(first.attributes(), user)]  # alone, or all would fail together
    answers += await asyncio.gather(*(viewer.may(one.attributes(), user) for one in rest))
    return dict(zip([first, *rest], answers, strict=True))


async def _ask_permissions(
    viewer: Viewer, settings: Settings, deployment: Json
) -> dict[Permission, bool]:
    """What the operator's account may do."""
    known = None if isinstance(deployment, Unseen) else deployment
    account = raw.mapping(known, "spec", "template", "spec").get("serviceAccountName")
    namespace = settings.namespace
    user = {
        "user": f"system:serviceaccount:{namespace}:{account or names.OPERATOR}",
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
            "system:authenticated",
        ],
    }
    return await _ask(viewer, operators_permissions(settings), user)


async def _try_pod(viewer: Viewer, settings: Settings, namespace: str | None) -> Probe | Unseen:
    """What would become of a pod that asks, in a namespace that does not forbid it."""
    where = namespace or await _namespace_to_try(viewer, settings)
    its_namespace = None
    with suppress(Forbidden):
        its_namespace = await viewer.find(kinds.NAMESPACE, where)
    why = opt_in(
        raw.strings(PROBE, "metadata", "labels"),
        where,
        raw.strings(its_namespace, "metadata", "labels"),
        settings,
    )
    if not why.is_in:
        return Unseen(f"namespace {where} is left out: name another one with --namespace")
    try:
        return Probe(where, pod=await viewer.try_pod(where, PROBE))
    except (Forbidden, NotFound, Refused) as error:
        return Probe(where, refusal=str(error))


async def _namespace_to_try(viewer: Viewer, settings: Settings) -> str:
    with suppress(ClusterError):
        for one in await viewer.list_all(kinds.NAMESPACE):
            labels = raw.strings(one, "metadata", "labels")
            name = str(raw.mapping(one, "metadata").get("name"))
            asks = labels.get(names.INJECT_LABEL) in names.IN_VALUES
            is_ending = "deletionTimestamp" in raw.mapping(one, "metadata")
            if asks and not is_ending and name not in excluded_namespaces(settings):
                return name
    is_excluded = viewer.namespace in excluded_namespaces(settings)
    return "default" if is_excluded else viewer.namespace
