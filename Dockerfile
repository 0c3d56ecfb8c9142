# An image with sbpjax from this clone:
#   docker build -t train .                          for NVIDIA GPUs; the host needs the driver and the container toolkit
#   docker build -t train --build-arg EXTRA=tpu .    for TPU hosts
FROM python:3.11-slim
ARG EXTRA=cuda12
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE /src/
COPY sbpjax /src/sbpjax
COPY docs /src/docs
RUN pip install --no-cache-dir "/src[${EXTRA}]" && rm -r /src
WORKDIR /work
ENV SBPJAX_CACHE_DIR=/cache
VOLUME /cache
CMD ["python", "train.py"]
