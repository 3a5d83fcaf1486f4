#!/bin/sh
# Prints the digest that each image has at its registry, as the lines of a file .env:
#   sh deploy/digests.sh > deploy/.env
# Compose reads that file, and takes each image by its content. Do it again when a tag changes.
set -eu
cd "$(dirname "$0")"
{
  sed -n 's/^ARG NODE_IMAGE=\(.*\)$/NODE \1/p' Dockerfile
  sed -n 's/^ *image: \(.*\)\${\([A-Z]*\)_DIGEST:-}$/\2 \1/p' compose.yaml
} | while read -r name image; do
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
  echo "${name}_DIGEST=@$digest"
done
