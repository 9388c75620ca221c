"""Admission reviews, read from bytes that anybody may have sent.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shield_operator import pods, raw
from shield_operator.coding import decode
from shield_operator.model import Json, is_dns_label

_MOST_VALUES: Final = 200_000
"""Objects and lists in a review. No pod that etcd would store has more (its variables, say, take
13 bytes each of 1.5 MiB); one that has would cost seconds and memory, and be refused at the end."""

_ABOUT: Final = ("uid", "resource", "subResource", "operation", "userInfo", "dryRun")

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"')


class BadReviewError(Exception):
    """What was sent is not an admission review that can be answered; says why in a sentence."""


@dataclass(frozen=True, slots=True)
class Review:
    """One review; `pod` is a pod only where `is_pod_creation`."""

    body: Json
    uid: str
    namespace: str
    pod: Json

    @property
    def is_pod_creation(self) -> bool:
        """Whether it is about what we are registered for. Anything else is none of our business."""
        request = self.body["request"]
        resource = raw.mapping(request, "resource")
        return (
            (resource.get("group"), resource.get("resource")) == ("", "pods")
            and not request.get("subResource")
            and request.get("operation") == "CREATE"
        )

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is going to be created."""
        return self.body["request"].get("dryRun") is True

    def for_kopf(self) -> Json:
        """The review as Kopf gets it: it takes apart and compares what it does not need.

        Its way to the handler needs to know what it is about; the handler takes the pod from here.
        """
        request = self.body["request"]
        about = {key: request[key] for key in _ABOUT if key in request}
        metadata = {"namespace": self.namespace, "name": pods.described(self.pod)}
        return {
            "apiVersion": self.body["apiVersion"],
            "kind": self.body["kind"],
            "request": {**about, "object": {"metadata": metadata}},
        }

    def __str__(self) -> str:
        """The pod, for a log line: nothing of its content."""
        return f"pod {self.namespace}/{pods.described(self.pod)}"


def read_review(content: bytes) -> Review:
    """Read an ``AdmissionReview`` of ``admission.k8s.io/v1``.

    Raises:
        BadReviewError: where it is none.
    """
    if _values(content) > _MOST_VALUES:
        raise BadReviewError(f"the body holds more than {_MOST_VALUES} objects and lists")
    try:
        body = decode(content)
    except (ValueError, RecursionError) as error:
        raise BadReviewError("the body is not JSON") from error
    if not isinstance(body, dict) or body.get("kind") != "AdmissionReview":
        raise BadReviewError("the body is not an AdmissionReview")
    if body.get("apiVersion") != "admission.k8s.io/v1":
        raise BadReviewError("the AdmissionReview is not of version admission.k8s.io/v1")
    request = body.get("request")
    if not isinstance(request, dict):
        raise BadReviewError("request is missing")
    uid = request.get("uid")
    if not isinstance(uid, str) or not uid:
        raise BadReviewError("request.uid is missing")
    review = Review(body, uid, str(request.get("namespace") or ""), request.get("object"))
    if review.is_pod_creation:
        _check_pod_creation(request)
    return review


def _values(content: bytes) -> int:
    """How many objects and lists the JSON holds; at the most, where they are few."""
    count = content.count(b"{") + content.count(b"[")
    if count > _MOST_VALUES:  # some of them may stand in strings
        bare = _STRING.sub(b"", content)
        count = bare.count(b"{") + bare.count(b"[")
    return count


def _check_pod_creation(request: Mapping[str, Json]) -> None:
    if raw.mapping(request, "resource").get("version") != "v1":
        raise BadReviewError("request.resource.version is not v1")
    pod = request.get("object")
    if not isinstance(pod, dict):
        raise BadReviewError("request.object is missing")
    for field in ("metadata", "spec"):
        if not isinstance(pod.get(field), dict):
            raise BadReviewError(f"request.object.{field} is not an object")
    if not isinstance(request.get("userInfo"), dict):
        raise BadReviewError("request.userInfo is missing")
    namespace = request.get("namespace")
    if not namespace:
        raise BadReviewError("request.namespace is missing")
    if not isinstance(namespace, str) or not is_dns_label(namespace):
        # It becomes a part of the paths that the API server is asked for.
        raise BadReviewError("request.namespace is not a namespace's name")
