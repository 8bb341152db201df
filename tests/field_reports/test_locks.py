"""Waits that users of other interposers reported, each as a test. The list is table.md."""
import os

import pytest



def test_a_process_killed_during_an_allocation_blocks_no_other(inside):
    """Kills twenty processes at random moments while they allocate and free, and another process measures its
    own calls."""
    inside("""
import os, random, signal, time
random.seed(3)
victims = []
def victim():
    pid = os.fork()
    if pid == 0:
        begin()
        while True:
            p = allocate(3 * MiB)
            must(cu.cuMemFree_v2(p))
    return pid
first = victim()
import threading
begin()
free = info()[0]
longest, stop = 0, False
def measure():
    global longest
    primary(0)
    while not stop:
        start = time.thread_time()
        wall = time.monotonic()
        must(cu.cuMemFree_v2(allocate(2 * MiB)))
        longest = max(longest, time.monotonic() - wall)
thread = threading.Thread(target=measure)
thread.start()
os.kill(first, signal.SIGKILL)
os.waitpid(first, 0)
time.sleep(0.5)
stop = True
thread.join()
# On a busy machine a thread may wait for a processor for seconds; the reported time was about 300 s.
assert longest < 10, f"one allocation took {longest:.1f} s"
""")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to change its user")
def test_another_user_in_the_slice_needs_no_permission_on_a_shared_file(inside):
    inside("""
import os
os.setgroups([]); os.setgid(65534); os.setuid(65534)
begin()
free, total = info()
assert total == 2 << 30
allocate(free)
pointer = c_uint64()
assert cu.cuMemAlloc_v2(byref(pointer), c_size_t(2 * MiB)) == OUT_OF_MEMORY
""")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to hide the file system")
def test_a_program_without_any_writable_folder_works(world, inside):
    """There is no home, no temporary folder, and the current folder is deleted: Carve must store no file in any of them."""
    empty = world.folder / "empty"
    empty.mkdir()
    inside(f"""
import os
os.chdir("{empty}"); os.rmdir("{empty}")
os.setgroups([]); os.setgid(65534); os.setuid(65534)
begin()
allocate(info()[0])
""", env={"HOME": "/nonexistent", "TMPDIR": "/nonexistent"})
