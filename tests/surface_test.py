#!/usr/bin/env python3
"""Compares the public surface with that of the last release: what the release had may go only with the version that semantic
versioning asks for, the major one, or before 1.0 the minor one. Additions are free.

    tests/surface_test.py
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import surface  # noqa: E402


def number(version):
    return tuple(int(part) for part in version.split("."))


def may_break(released, now):
    """Whether a version may lack what an earlier one had."""
    return number(now)[:2] > number(released)[:2] if number(released)[0] == 0 else number(now)[0] > number(released)[0]


def gone(released, now):
    return sorted(set(released) - set(now))


def check_rule():
    for released, now, allowed in (("0.3.0", "0.3.0", False), ("0.3.0", "0.3.1", False), ("0.3.9", "0.4.0", True), ("0.3.0", "0.10.0", True),
                                   ("0.9.0", "1.0.0", True), ("1.2.3", "1.3.0", False), ("1.2.3", "2.0.0", True)):
        assert may_break(released, now) == allowed, (released, now)


def check_reader(lines):
    """Every kind of name is found: a reader that finds none of a kind would let all of them go."""
    for line in ("command forecast MODEL", "command forecast --batch", "command forecast --mode training", "json forecast.latency_s number",
                 "json forecast.kernels[].latency_s number", "warning tight_memory", "python tilecast.forecast_many(table)",
                 "python tilecast.ForecastKeywords.batch", "python tilecast.Forecast.latency_s", "python tilecast.torch.export_graph()",
                 "python tilecast.SweepSummary.rows", "python tilecast.Exploration.front", "python tilecast.spark.forecast(frame)",
                 "c++ forecast.h Forecaster: Forecast forecast(const ModelRef& model, const GpuRef& gpu, const Request& request) const",
                 "c++ result.h Forecast: int64_t seq", "c++ choices.h enum Zero", "c++ forecast.h ModelRef load_model_ref(const std::string& name_or_path)"):
        assert line in lines, f"the surface lacks '{line}'"
    header = "namespace n { struct S { int a = 1, b; private: int hidden; }; class C { int hidden; public: void f() const { g(); } }; enum class E { kA = 2, kB }; }"
    found = list(surface.declarations(header))
    assert found == ["struct S", "S: int a", "S: int b", "class C", "C: void f() const", "enum E", "enum E::kA", "enum E::kB"], found
    assert gone(["c++ a", "json b"], ["json b", "json c"]) == ["c++ a"]


def main():
    now = surface.surface()
    check_rule()
    check_reader(set(now))
    version = surface.version()
    releases = sorted((path.stem for path in surface.FOLDER.glob("*.txt")), key=number)
    assert releases, f"no release in {surface.FOLDER}: tools/surface.py --write"
    assert number(releases[-1]) <= number(version), f"version {version} is before the release {releases[-1]}"
    released = releases[-1]
    before = (surface.FOLDER / f"{released}.txt").read_text(encoding="utf-8").splitlines()
    lost = gone(before, now)
    for line in lost:
        print(f"gone since {released}: {line}")
    if lost and not may_break(released, version):
        print(f"{len(lost)} names of release {released} are gone or changed, and version {version} promises them (docs/reference/stability.md); keep "
              "them, or raise the version in CMakeLists.txt and say so in CHANGELOG.md")
        return 1
    print(f"surface: {len(now)} names, {len(gone(now, before))} new since {released}, {len(lost)} gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
