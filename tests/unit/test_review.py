"""Admission reviews, read from bytes that anybody may have sent."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from examples import pod
from shield_operator.review import BadReviewError, read_review

REQUEST: dict[str, Any] = {
    "uid": "u-1",
    "resource": {"group": "", "version": "v1", "resource": "pods"},
    "operation": "CREATE",
    "namespace": "shop",
    "userInfo": {"username": "someone"},
    "object": pod(),
}


def review(**changes: Any) -> bytes:
    request = {key: value for key, value in {**REQUEST, **changes}.items() if value is not None}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


def test_a_pod_creation() -> None:
    found = read_review(review())
    assert found.is_pod_creation
    assert (found.uid, found.namespace, found.pod) == ("u-1", "shop", REQUEST["object"])
    assert str(found) == "pod shop/web-…"


def test_braces_in_strings_are_no_objects() -> None:
    a_pod = pod()
    a_pod["spec"]["containers"][0]["args"] = ['{"[' * 100_000, "\\" * 3]
    assert read_review(review(object=a_pod)).pod == a_pod


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"subResource": "ephemeralcontainers"},
        {"resource": {"group": "apps", "version": "v1", "resource": "deployments"}},
        {"resource": {"group": "metrics.k8s.io", "version": "v1", "resource": "pods"}},
        {"resource": None},
    ],
)
def test_anything_else_is_none_of_our_business(changes: dict[str, Any]) -> None:
    assert not read_review(review(**changes)).is_pod_creation


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[" + b"{}," * 210_000 + b"{}]", "more than 200000"),
        (b"[]", "not an AdmissionReview"),
        (b'{"kind": "Pod"}', "not an AdmissionReview"),
        (review().replace(b"io/v1", b"io/v1beta1"), "not of version"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "request is missing"),
        (review(uid=None), "request.uid"),
        (review(uid=7), "request.uid"),
        (review(resource={"group": "", "resource": "pods"}), "resource.version"),
        (review(resource={"group": "", "version": "v2", "resource": "pods"}), "resource.version"),
        (review(object=None), "request.object is missing"),
        (review(object=[]), "request.object is missing"),
        (review(object={"metadata": None, "spec": {}}), "request.object.metadata"),
        (review(object={"metadata": {}, "spec": []}), "request.object.spec"),
        (review(userInfo=None), "request.userInfo"),
        (review(namespace=None), "request.namespace is missing"),
        (review(namespace="a/../../nodes"), "request.namespace is not a namespace's name"),
        (review(namespace="a?watch=true"), "request.namespace is not a namespace's name"),
        (review(namespace=["shop"]), "request.namespace is not a namespace's name"),
    ],
)
def test_what_cannot_be_answered_says_why(content: bytes, why: str) -> None:
    with pytest.raises(BadReviewError, match=why):
        read_review(content)


@given(st.binary(max_size=200))
@hypothesis_settings(max_examples=200)
def test_garbage_is_refused_in_order(content: bytes) -> None:
    with pytest.raises(BadReviewError):
        read_review(content)


def test_kopf_gets_what_it_is_about_and_not_the_pod() -> None:
    """It would take a large pod apart, and compare it with nothing."""
    a_pod = pod(owner="ReplicaSet")
    a_pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    thin = read_review(review(object=a_pod, subResource="")).for_kopf()
    assert thin == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "resource": REQUEST["resource"],
            "subResource": "",
            "operation": "CREATE",
            "userInfo": REQUEST["userInfo"],
            "object": {"metadata": {"namespace": "shop", "name": "web-…"}},
        },
    }
