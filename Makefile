# What a newcomer needs: `make demo` and `make test`. Both set up what they need by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROXY := tests/e2e/contexts/proxy
FLASK := benchmarks/peers/flask
VERSIONS := 1.30.14 1.37.2
COMPILE := build/lock/bin/pip-compile --quiet --upgrade --generate-hashes --strip-extras \
	--no-emit-index-url --no-emit-find-links
# Files of tests beside each other, in this order: most of them wait for a cluster, the first longest.
BESIDE := --numprocesses=$(or $(JOBS),4) --dist=loadfile --no-loadscope-reorder
export PYTHONPATH := hack

.PHONY: help setup demo test test-faults test-monitoring test-versions e2e image soak bench bench-parts lint types controlplane helm manifests crd docs lock clean

help:  ## show this
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(VENV)/installed  ## make the virtual environment in .venv, with the console scripts

$(VENV)/installed: requirements.txt requirements-dev.txt setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version.split()[0] + ": set PYTHON=")'
	@echo "setting up $(VENV) (a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup  ## see a pod get its sidecar on a real API server; KEEP=1 leaves it running
	@$(BIN)/python hack/demo.py $(if $(KEEP),--keep)

test: lint types controlplane helm  ## everything that needs neither root nor a cluster
	$(BIN)/python -m pytest $(BESIDE) tests/apiserver tests/unit tests/golden tests/cli
	$(BIN)/python -m pytest tests/faults

e2e: setup  ## as root: the image, the manifest and the real proxy in a real cluster of one node
	@PYTHONPATH=operator:hack:tests $(BIN)/python -m e2e

image: setup  ## the operator's image, built by docker, podman or buildah
	@$(BIN)/python hack/image.py

bench: setup controlplane  ## beside other webhooks; writes docs/benchmarks.md, docs/capacity.md (15 min; QUICK=1: 2, writes nothing)
	@PYTHONPATH=.:operator:hack:tests $(BIN)/python -m benchmarks.comparison $(if $(QUICK),--quick)

bench-parts: setup  ## how long a decision takes, by configs and size of the pod; and a file of manifests
	@PYTHONPATH=operator:hack:tests $(BIN)/python benchmarks/selection.py
	@PYTHONPATH=operator:hack:tests $(BIN)/python benchmarks/pod_size.py
	@PYTHONPATH=operator:hack:tests $(BIN)/python benchmarks/manifests.py

test-faults: setup controlplane  ## try every fault on real control planes, and write docs/reliability.md
	$(BIN)/python -m pytest tests/faults --write-reliability

test-monitoring: setup controlplane  ## alerts and dashboard, with Debian's Prometheus (minutes)
	$(BIN)/python -m pytest tests/monitoring

soak: setup controlplane  ## 100,000 admissions to one replica: does its memory grow? (minutes)
	@PYTHONPATH=operator:hack:tests $(BIN)/python -m faults.soak

test-versions: setup  ## the tests against the API server, on the oldest and the newest Kubernetes (long)
	for version in $(VERSIONS); do \
		KUBERNETES_VERSION=$$version $(BIN)/python -m pytest $(BESIDE) tests/apiserver || exit 1; \
	done

lint: setup  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup  ## mypy --strict
	$(BIN)/mypy operator hack tests benchmarks

controlplane: setup  ## build kube-apiserver, etcd, … into the cache folder (minutes, once)
	@$(BIN)/python -m controlplane build

helm: setup  ## build Helm 3 and 4, which the chart is tried with (minutes, once)
	@$(BIN)/python -m controlplane build helm3 helm4

manifests: setup  ## render manifests/install.yaml from manifests/base and crds, and fill the chart
	@$(BIN)/python hack/manifests.py

crd: setup  ## render crds/ from hack/crd and the API server's own OpenAPI
	@$(BIN)/python -m crd

docs: setup  ## write the fields' reference in docs/configure.md from crds/
	@$(BIN)/python hack/reference.py

lock:  ## resolve the requirements files anew
	@$(PYTHON) -m venv build/lock
	@build/lock/bin/pip install --quiet pip-tools
	CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) --output-file requirements.txt setup.cfg
	CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) --output-file $(PROXY)/requirements.txt $(PROXY)/requirements.in
	CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) --output-file $(FLASK)/requirements.txt $(FLASK)/requirements.in
	CUSTOM_COMPILE_COMMAND="make lock" $(COMPILE) --allow-unsafe --output-file requirements-dev.txt requirements-dev.in

clean:  ## remove what the above made in this folder
	rm -rf $(VENV) build dist operator/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
