#!/usr/bin/env python3
"""A trace of torch.profiler as Nsight Systems would export it: what the reader of its tables is compared with.

    research/traces/as_nsight.py trace.json.gz trace.sqlite

No export of Nsight Systems is at hand. Tables and columns are those of NVIDIA's published schema (User Guide, "SQLite Schema Reference"); names of
operators with their sizes are written as torch.autograd.profiler.emit_nvtx(record_shapes=True) does. Dtypes, strides and numbers are left out, as there.
"""
import gzip
import json
import sqlite3
import sys
from pathlib import Path

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, cuDevice INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER,
  streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,
  gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, registersPerThread INTEGER,
  staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER, textId INTEGER);
"""
COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "HtoH": 9, "PtoP": 10}
PUSH_POP_RANGE = 59
# globalPid: hardware, virtual machine, process; globalTid has the thread in its lowest 24 bits.
PROCESS = 1 << 56 | 1 << 48 | 4242 << 24


class Export:
    def __init__(self, path: Path):
        path.unlink(missing_ok=True)
        self.db = sqlite3.connect(path)
        self.db.executescript(SCHEMA)
        self.texts: dict = {}
        self.threads: dict = {}

    def text(self, value: str) -> int:
        return self.texts.setdefault(value, len(self.texts))

    def insert(self, table: str, **columns: object) -> None:
        names = ", ".join(columns)
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", list(columns.values()))

    def add(self, event: dict) -> None:
        args = event.get("args", {})
        start = round(float(event["ts"]) * 1000)
        times = {"start": start, "end": start + round(float(event["dur"]) * 1000)}
        device = {"deviceId": int(args.get("device", 0)), "streamId": int(args.get("stream", 0)),
                  "correlationId": args.get("correlation"), "globalPid": PROCESS, "graphNodeId": args.get("graph node id")}
        thread = PROCESS | self.threads.setdefault(str(event.get("tid")), len(self.threads))
        category = event.get("cat")
        if category == "kernel":
            sizes = {f"{kind}{axis}": args.get(kind, [0, 0, 0])[i] for kind in ("grid", "block") for i, axis in enumerate("XYZ")}
            name = self.text(event["name"])
            self.insert("CUPTI_ACTIVITY_KIND_KERNEL", **times, **device, **sizes, demangledName=name, shortName=name,
                        registersPerThread=args.get("registers per thread", 0))
        elif category == "gpu_memcpy":
            kind = next((number for word, number in COPY_KINDS.items() if word in event["name"]), 0)
            self.insert("CUPTI_ACTIVITY_KIND_MEMCPY", **times, **device, bytes=int(args.get("bytes", 0)), copyKind=kind)
        elif category == "gpu_memset":
            self.insert("CUPTI_ACTIVITY_KIND_MEMSET", **times, **device, bytes=int(args.get("bytes", 0)), value=0)
        elif category in ("cuda_runtime", "cuda_driver"):
            self.insert("CUPTI_ACTIVITY_KIND_RUNTIME", **times, globalTid=thread, correlationId=args.get("correlation"),
                        nameId=self.text(event["name"] + "_v7000"), returnValue=0)
        elif category == "cpu_op":
            dims = [size if all(isinstance(one, int) for one in size) else [] for size in args.get("Input Dims", [])]
            text = f"{event['name']}, op_id = 1" + (f", sizes = {json.dumps(dims)}" if dims else "")
            self.insert("NVTX_EVENTS", **times, eventType=PUSH_POP_RANGE, text=text, globalTid=thread)
        elif category == "user_annotation" and event["name"].startswith("ProfilerStep"):
            self.insert("NVTX_EVENTS", **times, eventType=PUSH_POP_RANGE, textId=self.text(event["name"]), globalTid=thread)

    def finish(self) -> None:
        self.db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for text, number in self.texts.items()])
        self.db.commit()
        self.db.close()


def main() -> None:
    source, target = map(Path, sys.argv[1:])
    with (gzip.open(source) if source.suffix == ".gz" else source.open("rb")) as file:
        trace = json.load(file)
    export = Export(target)
    for device in trace.get("deviceProperties", []):
        export.insert("TARGET_INFO_GPU", id=device["id"], cuDevice=device["id"], name=device["name"],
                      totalMemory=device["totalGlobalMem"], smCount=device.get("numSms", 0))
    for event in trace["traceEvents"]:
        if event.get("ph") == "X" and "dur" in event:
            export.add(event)
    export.finish()


if __name__ == "__main__":
    main()
