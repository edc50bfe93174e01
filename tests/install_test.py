#!/usr/bin/env python3
"""Installs the build to a temporary folder and looks at what lies there.

    tests/install_test.py <build folder>
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, check=True, capture_output=True, text=True, **options)


def completions(script: Path, line: str) -> list:
    """What bash offers at the end of a command line."""
    words = line.split(" ")
    program = (f'source "{script}"; COMP_WORDS=({" ".join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; '
               '_tilecast; printf "%s\\n" "${COMPREPLY[@]}"')
    return run("bash", "--norc", "-c", program).stdout.split()


def check_bash(script: Path) -> None:
    run("bash", "-n", str(script))
    assert completions(script, "tilecast fore") == ["forecast"]
    assert completions(script, "tilecast forecast --mod") == ["--mode"]
    assert completions(script, "tilecast forecast --mode ") == ["inference", "training"]
    assert "llama-3-8b" in completions(script, "tilecast forecast llama-")
    assert "nvidia-h100-sxm5-80gb" in completions(script, "tilecast kernel linear --gpu nvidia-h100")
    assert completions(script, "tilecast forecast x --format = js") == ["json"]
    assert "linear" in completions(script, "tilecast kernel lin")
    assert "trtllm" in completions(script, "tilecast forecast x --software ")


def check_other_shells(share: Path) -> None:
    zsh, fish = shutil.which("zsh"), shutil.which("fish")
    if zsh:
        run(zsh, "-n", str(share / "zsh/site-functions/_tilecast"))
    if fish:
        script = share / "fish/vendor_completions.d/tilecast.fish"
        run(fish, "-n", str(script))
        offered = run(fish, "-c", f"source {script}; complete -C 'tilecast forecast x --attention '").stdout
        assert "flash" in offered, offered


def check_manual(page: Path) -> None:
    groff = shutil.which("groff")
    if not groff:
        return
    result = run(groff, "-man", "-Tutf8", "-ww", "-z", str(page))
    assert result.stderr == "", result.stderr
    text = run(groff, "-man", "-Tascii", "-P-c", "-P-b", "-P-u", str(page)).stdout
    for word in ("EXIT STATUS", "--host-launch-us", "NO_COLOR", "TILECAST CALIBRATE"):
        assert word in text, word


def cached(build: str, name: str) -> str:
    """A variable of the build's CMake cache; "" where it has none of that name."""
    lines = (Path(build) / "CMakeCache.txt").read_text().splitlines()
    return next((line.split("=", 1)[1] for line in lines if line.startswith(name + ":")), "")


def check_package(prefix: Path, folder: Path) -> None:
    """Programs of a few lines are built against the installed libraries and give the program's own numbers."""
    build = folder / "uses"
    source = Path(__file__).resolve().parent / "package"
    # A library that was built with sanitizers must be linked with them.
    flags = cached(sys.argv[1], "CMAKE_CXX_FLAGS")
    run("cmake", "-G", "Ninja", "-S", str(source), "-B", str(build), f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_CXX_FLAGS={flags}")
    run("cmake", "--build", str(build))
    forecast = [str(prefix / "bin/tilecast"), "forecast", "gpt2_large", "--gpu", "H100", "--batch", "4"]
    expected = json.loads(run(*forecast, "--format", "json").stdout)["latency_s"]
    found = float(run(str(build / "uses_tilecast")).stdout)
    assert abs(found / expected - 1) < 1e-6, (found, expected)
    # Forecasting needs none of the libraries that training uses, and training loads XGBoost when it needs it.
    needed = run("ldd", str(build / "uses_tilecast")).stdout
    assert "xgboost" not in needed and "lzma" not in needed, needed
    assert "xgboost" not in run("ldd", str(prefix / "bin/tilecast")).stdout
    rows = folder / "rows.csv"
    sizes = [(128 * i, 64 * j) for i in range(1, 16) for j in range(1, 16)]
    rows.write_text("gpu,op,dtype,m,n,latency_s\n" +
                    "".join(f"H100,softmax,fp32,{m},{n},{4e-6 + 8 * m * n / 2e12}\n" for m, n in sizes))
    assert run(str(build / "uses_train"), str(rows), str(folder / "weights")).stdout == \
        "1 held out, 1 calibrated, 1 evaluated\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        prefix = Path(folder)
        run("cmake", "--install", sys.argv[1], "--prefix", str(prefix))
        share = prefix / "share"
        files = [prefix / "bin/tilecast", share / "man/man1/tilecast.1", share / "bash-completion/completions/tilecast",
                 share / "zsh/site-functions/_tilecast", share / "fish/vendor_completions.d/tilecast.fish",
                 share / "doc/tilecast/schema/forecast.schema.json", share / "doc/tilecast/LICENSE"]
        for file in files:
            assert file.is_file() and file.stat().st_size > 0, f"{file} is not installed"
        # The installed program is found on PATH and needs nothing of the build.
        environment = {**os.environ, "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}"}
        assert run("tilecast", "--version", env=environment, cwd=folder).stdout.startswith("tilecast ")
        check_package(prefix, Path(folder))
        check_bash(files[2])
        check_other_shells(share)
        check_manual(files[1])
    print("the installed files are there and work")
    return 0


if __name__ == "__main__":
    sys.exit(main())
