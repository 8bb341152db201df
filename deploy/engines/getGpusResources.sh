#!/bin/sh
# What Spark's resource discovery reads: the devices that CUDA shows, by index. A slice names its devices in
# CUDA_VISIBLE_DEVICES. Spark's own script of this name needs nvidia-smi. The script that the job names in
# spark.*.resource.gpu.discoveryScript is run instead if it can be executed.
script=${CARVE_DISCOVERY_SCRIPT:-}
if [ -f "$script" ] && [ -x "$script" ]; then
  unset CARVE_DISCOVERY_SCRIPT
  exec "$script" "$@"
fi
[ -z "$script" ] || echo "carve: discoveryScript $script cannot be executed; Carve's own script answers" >&2
count=$(printf '%s' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
addresses=""
index=0
while [ "$index" -lt "$count" ]; do
  addresses="${addresses:+$addresses, }\"$index\""
  index=$((index + 1))
done
echo "{\"name\": \"gpu\", \"addresses\": [$addresses]}"
