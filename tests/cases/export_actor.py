"""One of the processes of test_export_steps.py. For each line of its input it takes a random step with memory
and prints what it did.

Usage: export_actor.py SEED MAILBOX. All processes send what they export to the mailbox, which is a socket;
any of them may receive it, including the sender.
"""
import ctypes
import os
import random
import socket
import sys
from ctypes import byref, c_int, c_size_t, c_uint64, c_ulonglong, c_void_p

from driver import MiB, OUT_OF_MEMORY, Access, Location, Properties, cu, info, primary

DESCRIPTOR = 1  # CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
# The errors with which the driver answers if the exporter has released the memory, or if this process already
# has it.
GONE = (1, 101, 201, 205, 208, 400)


class Handle(ctypes.Structure):
    """CUipcMemHandle, and CUmemPoolPtrExportData."""
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps: pinned, as a descriptor, on device 0."""
    _fields_ = [("type", c_int), ("handles", c_int), ("location", Location), ("rest", ctypes.c_ubyte * 72)]


class Actor:
    def __init__(self, seed, mailbox):
        self.random = random.Random(seed)
        self.mailbox = mailbox
        # (handle, bytes), (address, bytes), pointers, opened pointers, (pool, pointer), imported (pool, pointer).
        self.physical, self.mapped, self.linear, self.opened, self.pools, self.imported = [], [], [], [], [], []

    def some_bytes(self):
        return self.random.choice([2, 4, 34, 100, 256, 512]) * MiB

    def one_of(self, held):
        return held.pop(self.random.randrange(len(held))) if held else None

    def done(self, result, allowed=()):
        assert result in (0, OUT_OF_MEMORY, *allowed), f"error {result}"
        return result == 0

    def send(self, kind, size, handle=b"", fd=-1):
        try:
            socket.send_fds(self.mailbox[0], [kind + size.to_bytes(8, "little") + bytes(handle)], [fd] if fd >= 0 else [])
        except BlockingIOError:
            pass  # The mailbox is full.
        if fd >= 0:
            os.close(fd)

    def create(self):
        handle, size = c_ulonglong(), self.some_bytes()
        properties = Properties.on(0)
        properties.handle_types = DESCRIPTOR
        if self.done(cu.cuMemCreate(byref(handle), c_size_t(size), byref(properties), c_ulonglong(0))):
            self.physical.append((handle, size))

    def map(self, handle=None, size=0):
        if handle is None:
            if not self.physical:
                return
            handle, size = self.random.choice(self.physical)
        address = c_uint64()
        assert self.done(cu.cuMemAddressReserve(byref(address), c_size_t(size), c_size_t(0), c_uint64(0), c_ulonglong(0)))
        assert self.done(cu.cuMemMap(address, c_size_t(size), c_size_t(0), handle, c_ulonglong(0)))
        assert self.done(cu.cuMemSetAccess(address, c_size_t(size), byref(Access(Location(1, 0), 3)), c_size_t(1)))
        self.mapped.append((address, size))

    def unmap(self):
        if mapping := self.one_of(self.mapped):
            assert self.done(cu.cuMemUnmap(mapping[0], c_size_t(mapping[1])))
            assert self.done(cu.cuMemAddressFree(mapping[0], c_size_t(mapping[1])))

    def release(self):
        if physical := self.one_of(self.physical):
            assert self.done(cu.cuMemRelease(physical[0]))

    def export_physical(self):
        if self.physical:
            handle, size = self.random.choice(self.physical)
            fd = c_int(-1)
            if self.done(cu.cuMemExportToShareableHandle(byref(fd), handle, DESCRIPTOR, c_ulonglong(0))):
                self.send(b"v", size, fd=fd.value)

    def allocate(self):
        pointer = c_uint64()
        if self.done(cu.cuMemAlloc_v2(byref(pointer), c_size_t(self.some_bytes() - self.random.randrange(MiB)))):
            self.linear.append(pointer)

    def free(self):
        if pointer := self.one_of(self.linear):
            assert self.done(cu.cuMemFree_v2(pointer))

    def export_linear(self):
        if self.linear:
            handle = Handle()
            if self.done(cu.cuIpcGetMemHandle(byref(handle), self.random.choice(self.linear))):
                self.send(b"i", 0, handle)

    def close(self):
        if pointer := self.one_of(self.opened):
            assert self.done(cu.cuIpcCloseMemHandle(pointer))

    def make_pool(self):
        pool, pointer = c_void_p(), c_uint64()
        assert self.done(cu.cuMemPoolCreate(byref(pool), byref(PoolProperties(1, DESCRIPTOR, Location(1, 0)))))
        if self.done(cu.cuMemAllocFromPoolAsync(byref(pointer), c_size_t(self.some_bytes()), pool, None)):
            self.pools.append((pool, pointer))
        else:
            assert self.done(cu.cuMemPoolDestroy(pool))

    def end_pool(self):
        if owned := self.one_of(self.pools if self.random.random() < 0.5 else self.imported):
            assert self.done(cu.cuMemFreeAsync(owned[1], None))
            assert self.done(cu.cuStreamSynchronize(None))
            assert self.done(cu.cuMemPoolDestroy(owned[0]))

    def export_pool(self):
        if self.pools:
            pool, pointer = self.random.choice(self.pools)
            fd, handle = c_int(-1), Handle()
            if self.done(cu.cuMemPoolExportToShareableHandle(byref(fd), pool, DESCRIPTOR, c_ulonglong(0))):
                assert self.done(cu.cuMemPoolExportPointer(byref(handle), pointer))
                self.send(b"p", 0, handle, fd.value)

    def receive(self):
        try:
            message, fds, _, _ = socket.recv_fds(self.mailbox[1], 128, 1)
        except BlockingIOError:
            return
        size, handle = int.from_bytes(message[1:9], "little"), message[9:]
        if message[:1] == b"i":
            pointer = c_uint64()
            if self.done(cu.cuIpcOpenMemHandle_v2(byref(pointer), Handle.from_buffer_copy(handle), 1), GONE):
                self.opened.append(pointer)
        elif message[:1] == b"p":
            self.import_pool(fds[0], handle)
        elif self.random.random() < 0.8:  # Otherwise closes the descriptor unused.
            self.import_physical(fds[0], size)
        for fd in fds:
            os.close(fd)

    def import_physical(self, fd, size):
        handle = c_ulonglong()
        if not self.done(cu.cuMemImportFromShareableHandle(byref(handle), c_void_p(fd), DESCRIPTOR), GONE):
            return
        if self.random.random() < 0.5:
            self.physical.append((handle, size))
        else:
            self.map(handle, size)
            assert self.done(cu.cuMemRelease(handle))

    def import_pool(self, fd, handle):
        pool, pointer = c_void_p(), c_uint64()
        if not self.done(cu.cuMemPoolImportFromShareableHandle(byref(pool), c_void_p(fd), DESCRIPTOR, c_ulonglong(0)), GONE):
            return
        if self.done(cu.cuMemPoolImportPointer(byref(pointer), pool, byref(Handle.from_buffer_copy(handle))), GONE):
            self.imported.append((pool, pointer))
        else:
            assert self.done(cu.cuMemPoolDestroy(pool))

    STEPS = [create, create, map, unmap, release, export_physical, export_physical, allocate, allocate, free, free, export_linear, close,
             make_pool, end_pool, end_pool, export_pool, receive, receive, receive, receive]


def main():
    mailbox = [socket.socket(fileno=int(word)) for word in sys.argv[2].split(",")]
    actor = Actor(int(sys.argv[1]), mailbox)
    primary(0)
    step = "begin"
    while True:
        free, total = info()
        print(step, total - free, flush=True)
        if not sys.stdin.readline():
            return
        chosen = actor.random.choice(Actor.STEPS)
        chosen(actor)
        step = chosen.__name__


if __name__ == "__main__":
    main()
