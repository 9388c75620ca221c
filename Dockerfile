# The operator's image: `make image`, or `docker build --tag llm-shield-operator:0.1.0 .`
ARG BASE=debian:trixie-slim

FROM ${BASE} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates \
        python3 python3-pip python3-setuptools
WORKDIR /build
RUN python3 -m venv --without-pip /opt/shield-operator
COPY requirements.txt .
# Where packages come from another registry than PyPI: two secrets, which stay out of the result.
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=pip-ca.pem \
    export PIP_CONFIG_FILE=/run/secrets/pip.conf && \
    if [ -s /run/secrets/pip-ca.pem ]; then export PIP_CERT=/run/secrets/pip-ca.pem; fi && \
    pip --python /opt/shield-operator/bin/python install --no-cache-dir --disable-pip-version-check \
        --only-binary :all: --require-hashes --requirement requirements.txt
COPY setup.cfg pyproject.toml README.md LICENSE ./
COPY operator operator
# Debian's setuptools builds it; nothing is fetched.
RUN python3 -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir . . && \
    pip --python /opt/shield-operator/bin/python install --no-deps --no-index ./*.whl

FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends python3 && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/* /var/log/*
COPY --from=build /opt/shield-operator /opt/shield-operator
USER 65532:65532
ENTRYPOINT ["/opt/shield-operator/bin/shield-operator"]
CMD ["run"]
