#!/usr/bin/env python3
"""Writes the bill of materials of a release as CycloneDX 1.5 JSON.

    tools/sbom.py [FILE]
    tools/sbom.py --check   that it lists every library that the build names

Components are the libraries whose code is in the program, the package or the wheels, with the versions of Debian's packages that they are
built from. A library that cmake or a tool names and this list does not is an error, so that the list cannot fall behind.
"""
import json
import re
import subprocess
import sys
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Name of the library: Debian's package, licence (SPDX), how its code is used, the word by which CMake or tools/wheels.py name it.
LIBRARIES = {
    "fmt": ("libfmt-dev", "MIT", "text; headers in wheels, else a shared library", "fmt"),
    "nlohmann-json": ("nlohmann-json3-dev", "MIT", "JSON; headers", "nlohmann_json"),
    "eigen": ("libeigen3-dev", "MPL-2.0", "linear algebra; headers", "Eigen3"),
    "cli11": ("libcli11-dev", "BSD-3-Clause", "command line; headers, in the program", "CLI11"),
    "boost": ("libboost1.74-dev", "BSL-1.0", "Asio and Beast: the service; headers, in the program", "Boost"),
    "zlib": ("zlib1g-dev", "Zlib", "profiles in .gz; static in wheels, else shared", "ZLIB"),
    "xz-utils": ("liblzma-dev", "0BSD", "measurements in .xz; liblzma, static in wheels, else shared", "LibLZMA"),
    "sqlite": ("libsqlite3-dev", "blessing", "exports of Nsight Systems; Debian's static library in wheels, else shared", "SQLite3"),
    "pybind11": (None, "BSD-3-Clause", "bindings of Python; headers, in the Python package", "pybind11"),
    "libc++": (None, "Apache-2.0 WITH LLVM-exception", "the C++ library of wheels, static, of the package ziglang", "ziglang"),
}
# Loaded where they are installed, never distributed; tools of builds and tests.
NOT_DISTRIBUTED = {"Threads", "Git", "benchmark", "GTest", "Python", "Python3", "CUDAToolkit"}


def version_of(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def pinned(name):
    return re.search(rf'"{re.escape(name)}==([0-9.]+)"', (ROOT / "tools/wheels.py").read_text(encoding="utf-8"))[1]


def named():
    """The libraries that CMake looks for."""
    names = set()
    for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake"), ROOT / "measure/CMakeLists.txt"]:
        text = path.read_text(encoding="utf-8")
        names |= set(re.findall(r"^\s*(?:find_package|tilecast_find_headers)\((\w+)\s", text, re.M))
    return names - {"tilecast", "package"}


def components():
    for name, (package, licence, use, _) in LIBRARIES.items():
        version = version_of(package) if package else pinned({"libc++": "ziglang"}.get(name, name))
        if version is None:
            raise SystemExit(f"tools/sbom.py: the package {package} is not installed: its version is not known (tools/setup.sh)")
        kind = f"pkg:deb/debian/{package}@{version}" if package else f"pkg:pypi/{'ziglang' if name == 'libc++' else name}@{version}"
        expression = {"expression": licence} if " " in licence else {"license": {"id": licence}}
        yield {"type": "library", "bom-ref": name, "name": name, "version": version, "description": use, "licenses": [expression], "purl": kind}


def check():
    names = named()
    missing = names - {word for *_, word in LIBRARIES.values()} - NOT_DISTRIBUTED
    if missing:
        raise SystemExit(f"tools/sbom.py: {', '.join(sorted(missing))}: not in its lists of libraries")
    gone = {word for *_, word in LIBRARIES.values()} - names - {"ziglang"}
    if gone:
        raise SystemExit(f"tools/sbom.py: {', '.join(sorted(gone))}: in its list, and the build does not name it")


def document():
    check()
    version = re.search(r"project\(tilecast VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
    parts = list(components())
    itself = {"type": "application", "bom-ref": "tilecast", "name": "tilecast", "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}]}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([itself, parts], sort_keys=True))  # equal parts, equal bytes
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": f"urn:uuid:{serial}", "version": 1, "metadata": {"component": itself},
            "components": parts, "dependencies": [{"ref": "tilecast", "dependsOn": [part["bom-ref"] for part in parts]}]}


def main():
    if sys.argv[1:] == ["--check"]:
        return check()
    text = json.dumps(document(), indent=1) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return None


if __name__ == "__main__":
    main()
