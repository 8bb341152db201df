"""Missing or wrong values that users of other interposers reported, each as a test. The list is table.md."""
from conftest import LOAD, until


def test_the_process_list_shows_the_slices_own_processes_with_their_own_pids(world, inside):
    world.begin("run", "--memory", "1GiB", "--name", "stranger", "--device", "0", "--", "sleep", "60")
    inside("""
import os, time
begin()
allocate(100 * MiB)
r, w = os.pipe()
child = os.fork()
if child == 0:
    time.sleep(60)
processes = Nvml().processes()
assert list(processes) == [os.getpid()], processes
assert processes[os.getpid()] >= 100 * MiB
os.kill(child, 9)
""", "--device", "0")


def test_inside_and_outside_show_the_same_use(world, beside):
    beside("""
import time
begin()
allocate(300 * MiB)
p = allocate_async(20 * MiB)
must(cu.cuCtxSynchronize())
nvml = Nvml()
free, total = info()
print(total - free, nvml.memory().used, nvml.memory2().used, sum(nvml.processes().values()), flush=True)
time.sleep(60)
""")
    charged = lambda: world.show("beside")["parts"][0] if "beside" in world.slices() else {"charged_bytes": 0}
    program = world.programs[-1]
    by_driver, by_nvml, by_nvml2, by_processes = map(int, program.stdout.readline().split())
    assert by_driver == by_nvml == by_nvml2
    assert until(lambda: charged()["charged_bytes"] == by_driver), (charged(), by_driver)
    assert until(lambda: charged()["used_bytes"] == by_processes), \
        (charged()["used_bytes"], by_processes, world.show("beside")["processes"])


def test_a_slice_sees_only_its_own_utilisation(world, inside):
    world.begin("run", "--memory", "1GiB", "--name", "busy", "--device", "0", "--", LOAD, "--kernels", "1ms", "--no-sync",
                "--seconds", "60")
    world.attached("busy")
    assert until(lambda: world.json("devices")["devices"][0]["utilization_percent"] > 50)
    inside("""
begin()
nvml = Nvml()
rates = (c_uint * 2)()
must(nvml.library.nvmlDeviceGetUtilizationRates(nvml.device, rates))
assert rates[0] < 20, f"{rates[0]} % though this slice does nothing"
""", "--device", "0")
