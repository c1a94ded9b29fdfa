# gputune beside the PyTorch of an image: docker build -t gputune .
#
# gputune is installed into the base image's Python and replaces no package there: the installed versions are constraints, and
# a conflict is an error. Another base: --build-arg BASE_IMAGE=... (Debian or Ubuntu, python3 3.11 or newer with pip and torch).
# For NVIDIA's images, whose entrypoint must run first: --target ngc. Pin the base by its digest for builds that can be
# repeated: BASE_IMAGE=pytorch/pytorch@sha256:...
ARG BASE_IMAGE=pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime


# Wheels of gputune and of its dependencies except torch, in versions that fit this base.
FROM ${BASE_IMAGE} AS wheels
# This stage is not part of the image.
# hadolint ignore=DL3002
USER 0:0
ARG PIP_DISABLE_PIP_VERSION_CHECK=1
ARG PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
RUN python3 -m pip list --format=freeze >/base.txt
COPY pyproject.toml .
RUN python3 -c "import tomllib; needed = tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies']; \
        print(*(name for name in needed if name != 'torch'), sep='\n')" >/dependencies.txt \
 && python3 -m pip wheel --no-cache-dir --wheel-dir /opt/gputune --constraint /base.txt --requirement /dependencies.txt
COPY . .
RUN python3 -m pip wheel --no-cache-dir --wheel-dir /opt/gputune --no-deps .


FROM ${BASE_IMAGE} AS installed
USER 0:0
# The version of tini depends on the base's release.
# hadolint ignore=DL3008
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends tini \
 && rm -rf /var/lib/apt/lists/*
ARG PIP_BREAK_SYSTEM_PACKAGES=1
ARG PIP_DISABLE_PIP_VERSION_CHECK=1
ARG PIP_ROOT_USER_ACTION=ignore
# It stays in the image, for COPY --from=gputune /opt/gputune into other images.
COPY --from=wheels /opt/gputune /opt/gputune
# Bytecode without a check of its source's time: the root may be read-only, and a build may set the times of files.
RUN --mount=type=bind,from=wheels,source=/base.txt,target=/tmp/base.txt \
    python3 -m pip install --no-cache-dir --no-index --find-links /opt/gputune --constraint /tmp/base.txt gputune \
 && python3 -m compileall -q -f --invalidation-mode unchecked-hash "$(python3 -c 'import gputune; print(*gputune.__path__)')" \
      "$(python3 -c 'import gputune_start; print(gputune_start.__file__)')" \
 && gputune --version
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="gputune" \
      org.opencontainers.image.description="Check a GPU environment, measure what it can really do, and apply the settings that pay to any PyTorch program." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
USER 65532:65532


FROM installed AS ngc
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "/opt/nvidia/nvidia_entrypoint.sh", "gputune", "apply", "auto", "--"]
CMD ["gputune", "check"]


FROM installed AS plain
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "gputune", "apply", "auto", "--"]
CMD ["gputune", "check"]
