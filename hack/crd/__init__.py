"""The CustomResourceDefinition, generated: our fields by hand, Kubernetes' own from Kubernetes.

A config holds tolerations, affinity, variables and resources exactly as a pod does. Their schemas
are too long and too easily wrong to be copied by hand, and without them the API server would take
any typo. So a person edits two files, and this package puts them together with the OpenAPI that an
API server serves of itself:

    shieldsidecarconfig.yaml   the resource: fields, descriptions, bounds, rules, columns
    core_types.yaml            what we add to the core types, and what we leave out of them

The modules, each importing only those above it:

    schema     JSON schemas: merging patches, walking, finding what has no bound
    openapi    a core type's schema, made fit for a CustomResourceDefinition
    generate   both files and the OpenAPI put together, and written down
    __main__   `python -m crd`
"""

from crd.generate import GENERATED, HAND_WRITTEN, definition, kubernetes_version, render
from crd.openapi import CoreTypes, UnknownTypeError
from crd.schema import Schema, laid_over, merge_patch, unbounded

__all__ = [
    "GENERATED",
    "HAND_WRITTEN",
    "CoreTypes",
    "Schema",
    "UnknownTypeError",
    "definition",
    "kubernetes_version",
    "laid_over",
    "merge_patch",
    "render",
    "unbounded",
]
