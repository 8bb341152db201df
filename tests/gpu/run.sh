#!/usr/bin/env bash
# The acceptance of a build on NVIDIA's own driver: prints a table, leaves JSON.
#
#   tests/gpu/run.sh BIN_DIR [--json FILE] [--memory SIZE] [--only WORD]... [--sim SPEC]
#
# BIN_DIR is a build folder (build) or what tests/gpu/pack made of one. It needs a device that nobody else uses,
# Python 3, and nothing of a registry, a compiler, cgroups or mounts; what it cannot do here it lists with the
# reason. --sim SPEC runs the same over simulated devices, and says so in the table.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
  echo "run.sh: python3 is not installed here; the cases are written in it" >&2
  exit 2
fi
exec python3 "$here/acceptance.py" "$@"
