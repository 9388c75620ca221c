"""Manifests: YAML and JSON files, and the workloads in them.

What is not changed stays byte for byte; what is changed is read alike by all readers of YAML. The
modules, each importing only those above it:

    errors      what is wrong with a file, and where
    scalars     what an unquoted word means, and how to write one clearly
    reading     from text to values that know their places
    writing     JSON as YAML
    matching    what is the same in two values
    editing     changing a text so that it says something else
    file        a file's documents
    workloads   the pods that a document is about
    difference  what changed, as `diff -u` shows it
"""

from shield_operator.documents.difference import unified
from shield_operator.documents.errors import DocumentError
from shield_operator.documents.file import Document, documents
from shield_operator.documents.workloads import (
    Object,
    Workload,
    configs,
    namespaces,
    objects,
    workloads,
)

__all__ = [
    "Document",
    "DocumentError",
    "Object",
    "Workload",
    "configs",
    "documents",
    "namespaces",
    "objects",
    "unified",
    "workloads",
]
