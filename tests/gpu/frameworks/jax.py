"""JAX allocates three quarters of the device at its first use, which in a slice are three quarters of the
slice."""
import json
import sys

sys.path = [p for p in sys.path if not p.endswith("frameworks")]  # This file has the package's name.
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    print("JAX is not installed")
    sys.exit(77)
devices = [d for d in jax.devices() if d.platform == "gpu"]
if not devices:
    print("JAX sees no GPU")
    sys.exit(77)
x = jnp.ones((1024, 1024))
value = float((x @ x)[0, 0])
limit = devices[0].memory_stats()["bytes_limit"]
print(json.dumps({"version": jax.__version__, "bytes": [limit], "value": value}))
sys.exit(0 if value == 1024.0 else 1)
