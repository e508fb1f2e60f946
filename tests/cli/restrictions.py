"""What a process may not do, from its start on: for preexec_fn.

SPDX-License-Identifier: MIT
"""
import ctypes
import errno
import struct

LIBC = ctypes.CDLL(None, use_errno=True)

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
SECCOMP_MODE_FILTER = 2
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
OPENAT2 = 437  # everywhere


def prctl(*args):
    if LIBC.prctl(*(ctypes.c_ulong(arg) for arg in args + (0,) * (5 - len(args)))) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def without_openat2():
    """openat2() is not there, as in kernels before 5.6."""
    load_number, jump_if_equal, give_back = 0x20, 0x15, 0x06
    allow, fail = 0x7FFF0000, 0x00050000
    program = b"".join(struct.pack("HBBI", *instruction) for instruction in (
        (load_number, 0, 0, 0), (jump_if_equal, 0, 1, OPENAT2),
        (give_back, 0, 0, fail | errno.ENOSYS), (give_back, 0, 0, allow)))
    code = ctypes.create_string_buffer(program)
    fprog = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(code)))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(fprog))


def read_as_anybody():
    """Root may read files only as their modes say."""
    prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)
    prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH)
