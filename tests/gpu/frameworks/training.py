"""Trains a small network for the given number of seconds, and prints the steps per second after a second of
warm-up."""
import json
import os
import sys
import time

sys.path = [p for p in sys.path if not p.endswith("frameworks")]  # The folder has files with the packages' names.
try:
    import torch
except ImportError:
    print("PyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no device")
    sys.exit(77)
seconds, start_file = float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
torch.manual_seed(1)
network = torch.nn.Sequential(*[layer for _ in range(6) for layer in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]).cuda()
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
data = torch.randn(2048, 2048, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", torch.bfloat16):
        loss = torch.nn.functional.mse_loss(network(data), data)
    loss.backward()
    optimizer.step()
    return loss


def steps(duration):
    end, count = time.monotonic() + duration, 0
    while time.monotonic() < end:
        for _ in range(5):
            loss = step()
        torch.cuda.synchronize()
        count += 5
    return count, float(loss)


steps(1)
if start_file:  # The measurement starts when the other program is also ready.
    open(f"{start_file}.{sys.argv[3]}", "w").close()
    while not all(os.path.exists(f"{start_file}.{i}") for i in ("0", "1")):
        steps(0.05)
begin = time.monotonic()
count, loss = steps(seconds)
print(json.dumps({"steps_per_second": count / (time.monotonic() - begin), "loss": loss}))
