#!/bin/sh
# What Spark's resource discovery reads: the devices that CUDA shows, by index. A slice names its devices in
# CUDA_VISIBLE_DEVICES. Spark's own script of this name needs nvidia-smi.
count=$(printf '%s' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
addresses=""
index=0
while [ "$index" -lt "$count" ]; do
  addresses="${addresses:+$addresses, }\"$index\""
  index=$((index + 1))
done
echo "{\"name\": \"gpu\", \"addresses\": [$addresses]}"
