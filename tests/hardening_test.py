#!/usr/bin/env python3
"""What cmake/hardening.cmake promises of the program: hardening_test.py <tilecast> <source folder> [fortify stack link assertions paths]

Reads the ELF file itself; the words are the pieces that are switched on.
"""
import re
import struct
import sys
from pathlib import Path

PT_DYNAMIC, PT_GNU_RELRO, PT_GNU_STACK = 2, 0x6474E552, 0x6474E551
DT_FLAGS, DT_FLAGS_1, DF_BIND_NOW, DF_1_NOW, DF_1_PIE = 30, 0x6FFFFFFB, 8, 1, 0x08000000


def main() -> int:
    program, source, pieces = Path(sys.argv[1]).read_bytes(), sys.argv[2], set(sys.argv[3:])
    if program[:6] != b"\x7fELF\x02\x01":
        print("skipped: no 64-bit ELF file")
        return 0
    start, size, count = struct.unpack_from("<Q", program, 32)[0], *struct.unpack_from("<HH", program, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", program, start + i * size) for i in range(count)]
    dynamic = {}
    for kind, _, offset, _, _, length, _, _ in headers:
        if kind == PT_DYNAMIC:
            for at in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", program, at)
                dynamic.setdefault(tag, value)
    imports = set(re.findall(rb"\0(__[a-z0-9_]+_chk|__stack_chk_fail|_ZSt2\d__glibcxx_assert_fail[A-Za-z0-9_]*)(?=\0)", program))
    missing = []

    def expect(piece: str, holds: bool, what: str) -> None:
        if piece in pieces and not holds:
            missing.append(f"{piece}: {what}")

    expect("link", any(header[0] == PT_GNU_RELRO for header in headers), "no RELRO segment")
    expect("link", bool(dynamic.get(DT_FLAGS, 0) & DF_BIND_NOW or dynamic.get(DT_FLAGS_1, 0) & DF_1_NOW), "symbols are bound late")
    expect("link", bool(dynamic.get(DT_FLAGS_1, 0) & DF_1_PIE), "lies at a fixed address")
    expect("link", all(not header[1] & 1 for header in headers if header[0] == PT_GNU_STACK), "the stack can be executed")
    expect("stack", b"__stack_chk_fail" in imports, "no function guards its return address")
    expect("fortify", any(name.endswith(b"_chk") for name in imports), "no function of the C library is checked")
    expect("assertions", any(b"glibcxx_assert_fail" in name for name in imports), "containers are not checked")
    expect("paths", source.encode() + b"/" not in program, f"holds paths of {source}")
    print("\n".join(missing) if missing else f"hardened: {' '.join(sorted(pieces))}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
