#!/usr/bin/env python3
"""Runs a command that can create only sockets of some address families, as with systemd's
RestrictAddressFamilies=.

    tests/support/address_families.py AF_UNIX AF_INET -- build/bin/carved --sim a10x2

For any other family socket(2) fails with EAFNOSUPPORT (systemd.exec(5)). Uses a seccomp filter for x86-64.
"""
import ctypes
import errno
import os
import socket
import struct
import sys

# Constants from linux/bpf_common.h, linux/seccomp.h, linux/audit.h and asm/unistd_64.h.
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000
ARCHITECTURE_OFFSET, NUMBER_OFFSET, FIRST_ARGUMENT_OFFSET = 4, 0, 16
X86_64 = 0xC000003E
SOCKET = 41
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38


def filter_of(families):
    """Returns the filter's instructions: code, jump if true, jump if false, constant."""
    count = len(families)
    yield LOAD_WORD, 0, 0, ARCHITECTURE_OFFSET
    yield JUMP_IF_EQUAL, 0, count + 4, X86_64
    yield LOAD_WORD, 0, 0, NUMBER_OFFSET
    yield JUMP_IF_EQUAL, 0, count + 2, SOCKET
    yield LOAD_WORD, 0, 0, FIRST_ARGUMENT_OFFSET
    for i, family in enumerate(families):
        yield JUMP_IF_EQUAL, count - i, 0, family
    yield RETURN, 0, 0, FAIL | errno.EAFNOSUPPORT
    yield RETURN, 0, 0, ALLOW


def restrict(families):
    """Restricts this process and its children, until they end."""
    instructions = list(filter_of(families))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    words, command = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
    restrict([getattr(socket, word) for word in words])
    os.execvp(command[0], command)
