"""Tests PyTorch's caching allocator in a slice: the slice is the device, the error is PyTorch's own, and
freed memory can be allocated again."""
import json
import sys

try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no device")
    sys.exit(77)
piece = 64 << 20
free, total = torch.cuda.mem_get_info()


def fill():
    held = []
    try:
        while True:
            held.append(torch.empty(piece, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError:
        return len(held)


first = fill()
torch.cuda.empty_cache()
again = fill()
torch.cuda.empty_cache()
a = torch.randn(512, 512, device="cuda")
right = torch.allclose((a @ a).cpu(), a.cpu() @ a.cpu(), atol=1e-2)
print(json.dumps({"version": torch.__version__, "total": total, "free": free, "bytes": [first * piece, again * piece],
                  "computes": bool(right)}))
sys.exit(0 if right and first > 0 and abs(first - again) <= 1 else 1)
