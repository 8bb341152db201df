#!/bin/sh
# Prints the indices of the devices that CUDA shows, for Spark's resource discovery. A slice's devices are in
# CUDA_VISIBLE_DEVICES. Spark's own script of this name needs nvidia-smi. If the script in the job's
# spark.*.resource.gpu.discoveryScript is executable, it is run instead.
script=${CARVE_DISCOVERY_SCRIPT:-}
if [ -f "$script" ] && [ -x "$script" ]; then
  unset CARVE_DISCOVERY_SCRIPT
  exec "$script" "$@"
fi
[ -z "$script" ] || echo "carve: discoveryScript $script cannot be executed; Carve's own script is used instead" >&2
count=$(printf '%s' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
addresses=""
index=0
while [ "$index" -lt "$count" ]; do
  addresses="${addresses:+$addresses, }\"$index\""
  index=$((index + 1))
done
echo "{\"name\": \"gpu\", \"addresses\": [$addresses]}"
