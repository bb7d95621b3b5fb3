# A server of models, for processors without a GPU. Models are mounted, never copied:
#
#   docker build --build-arg TORCH=PATH_OR_NAME -t regard .
#   docker run -p 8000:8000 -e REGARD_KEY=secret -v ./runs/reviews:/models/reviews:ro regard /models/reviews
#
# TORCH is what pip installs as torch. The default comes with the libraries of a GPU, which are gigabytes; a wheel of the
# CPU build beside this file, or a package index of yours (PIP_EXTRA_INDEX_URL), makes the image small.
FROM python:3.11-slim AS build
ARG TORCH=torch
ARG PIP_EXTRA_INDEX_URL
COPY . /src
RUN python -m venv /regard \
 && /regard/bin/pip install --no-cache-dir --constraint /src/constraints.txt "$TORCH" \
 && /regard/bin/pip install --no-cache-dir --constraint /src/constraints.txt "/src[serve,fast,image,audio]"

FROM python:3.11-slim
COPY --from=build /regard /regard
RUN useradd --create-home regard
USER regard
WORKDIR /home/regard
EXPOSE 8000
HEALTHCHECK CMD ["/regard/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/ready')"]
ENTRYPOINT ["/regard/bin/regard", "serve", "--host", "0.0.0.0"]
