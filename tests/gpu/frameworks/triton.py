"""Compiles a Triton kernel in a slice, loads it with the driver API and launches it."""
import json
import sys

sys.path = [p for p in sys.path if not p.endswith("frameworks")]  # This file has the package's name.
try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    print("Triton is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("no device")
    sys.exit(77)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


x, y = torch.rand(100_000, device="cuda"), torch.rand(100_000, device="cuda")
out = torch.empty_like(x)
add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
right = torch.equal(out, x + y)
print(json.dumps({"version": triton.__version__, "computes": right}))
sys.exit(0 if right else 1)
