#!/usr/bin/env bash
# Runs the acceptance tests of a build on NVIDIA's own driver. Prints a table and writes JSON.
#
#   tests/gpu/run.sh BIN_DIR [--json FILE] [--memory SIZE] [--only WORD]... [--seconds N] [--sim SPEC]
#
# BIN_DIR is a build folder (build) or a folder created by tests/gpu/pack. The script needs Python 3 and a
# device that no other program uses. It needs no registry, compiler, cgroups or mounts, and lists each case
# that it skips with the reason. The cases that only a device can answer come first, and none starts after N
# seconds (420). The file with the results is written after each case. --sim SPEC runs the same cases on
# simulated devices, which the table shows.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
  echo "run.sh: python3 is not installed; the cases need it" >&2
  exit 2
fi
exec python3 "$here/acceptance.py" "$@"
