#!/usr/bin/env python3
"""Exact GPU memory of PyTorch and Transformers by phase, counted on a CPU with fake CUDA tensors (fake_cuda.py).

    tests/pytorch/memory_reference.py -o tests/data/memory_reference.csv       all cases of tests/pytorch/memory_cases.csv
    tests/pytorch/memory_reference.py --only gpt2_large --explain 12           what a peak consists of

A case is two training steps (the first makes the optimizer's state) or two forward passes. Every storage is followed from its
making to its last reference. The model's output lives until the backward pass ends, and gradients are set to None after each
optimizer step.

Columns, bytes: weights_bytes of parameters, buffers_bytes, inputs_bytes (with labels), gradients_bytes (all), optimizer_bytes
(states but the numbers of steps), as their tensors have; all others as the caching allocator rounds, to 512. saved_bytes: what the
forward pass leaves for the backward pass, its output with it; *_peak_bytes: the maximum within a phase of the second step, of
everything; peak_bytes: their maximum, which is what torch.cuda.max_memory_allocated shows
less cuBLAS workspaces, where no block is larger than asked for; allocated_bytes, reserved_bytes: by a replay of the caching
allocator (caching_allocator.py). Not in it: the CUDA context and what kernels take besides their results, but for the backward
pass of fused attention (TEMPORARIES).

Needs the CPU build of torch, transformers and g++; for adapters peft, and bitsandbytes for those beside quantized weights and
for its optimizers.
"""
import argparse
import concurrent.futures
import csv
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
import weakref

import caching_allocator
import fake_cuda
import memory_models

KEYS = memory_models.COLUMNS + [memory_models.ADAPTERS]
OUTPUTS = ["parameters", "weights_bytes", "buffers_bytes", "inputs_bytes", "gradients_bytes", "optimizer_bytes", "saved_bytes",
           "forward_peak_bytes", "backward_peak_bytes", "optimizer_peak_bytes", "peak_bytes", "allocated_bytes", "reserved_bytes",
           "torch", "transformers"]


def _round_up(size, multiple):
    return -(-size // multiple) * multiple


def flash_backward_bytes(grad, query, key, *rest):
    """dq in fp32, the softmax's row sums, dk and dv per query head: mha_bwd of flash_attn/flash_api.cpp."""
    batch, heads, length, head = query.shape
    rows = _round_up(length, 128)
    sizes = [4 * batch * heads * rows * _round_up(head, 32), 4 * batch * heads * rows]
    if key.shape[1] != heads:
        sizes += [batch * heads * key.shape[2] * head * query.element_size()] * 2
    return sizes


def efficient_backward_bytes(grad, query, key, value, bias, *rest):
    """The row sums; fp32 sums of dq where the result has 16 bits: _efficient_attention_backward."""
    batch, heads, length, head = query.shape
    sizes = [4 * batch * heads * _round_up(length, 32)]
    return sizes + ([4 * batch * heads * length * head] if query.element_size() == 2 else [])


TEMPORARIES = {"_scaled_dot_product_flash_attention_backward": flash_backward_bytes,
               "_scaled_dot_product_efficient_attention_backward": efficient_backward_bytes}


class Record:
    """A storage: its bytes, what it takes of the allocator, and who made it."""

    __slots__ = ("bytes", "size", "maker", "kind")

    def __init__(self, size, maker, kind="tensor"):
        self.bytes, self.size, self.maker, self.kind = size, caching_allocator.rounded(size), maker, kind


class Ledger:
    """What is allocated and freed, in order: (record, +1 or -1), and marks of the phases."""

    def __init__(self, device="cuda"):
        self.events, self.marks, self._known, self._device = [], [], {}, device

    def own(self, tensor, maker, kind="tensor"):
        """Follows the tensor's storage from now on, unless it is known."""
        if tensor.device.type != self._device:
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._known:
            if kind != "tensor":
                self._known[key][0].kind = kind
            return
        if storage.nbytes() == 0:
            return
        record = Record(storage.nbytes(), maker, kind)
        self.events.append((record, 1))
        self._known[key] = (record, weakref.ref(storage, lambda _: self._drop(key)))

    def _drop(self, key):
        self.events.append((self._known.pop(key)[0], -1))

    def passing(self, sizes, maker):
        """Memory that a kernel takes for its run."""
        records = [Record(size, maker, "temporary") for size in sizes]
        self.events += [(record, 1) for record in records]
        return records

    def end(self, records):
        self.events += [(record, -1) for record in records]

    def mark(self, name):
        self.marks.append((name, len(self.events)))


def follow(ledger):
    """A dispatch mode that enters every new storage into the ledger."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    def describe(func, tensor):
        return f"{func._overloadpacket.__name__} {list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"

    class Follow(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            made = result if isinstance(result, (tuple, list)) else (result,)
            for tensor in made:
                for one in tensor if isinstance(tensor, (tuple, list)) else (tensor,):
                    if isinstance(one, torch.Tensor):
                        ledger.own(one, describe(func, one))
            name = getattr(func, "_overloadpacket", func).__name__
            if name in TEMPORARIES:
                ledger.end(ledger.passing(TEMPORARIES[name](*args), name))
            return result

    return Follow()


def run(case):
    """The ledger of a case and its number of parameters. It marks the end of the model's making, of forward and backward pass, of
    the first optimizer step, which makes the states, of the second, and of zero_grad."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    ledger, training = Ledger(), case["mode"] == "training"
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = memory_models.build(case, "cuda")
        inputs = memory_models.inputs_of(model, case, "cuda")
        for kind, tensors in (("parameter", model.parameters()), ("parameter", memory_models.stored_beside(model)),
                              ("buffer", model.buffers()), ("input", inputs.values())):
            for tensor in tensors:
                ledger.own(tensor, kind, kind)
        optimizer = memory_models.optimizer_of(model, case)
        ledger.mark("start")
        with follow(ledger):
            with memory_models.autocast_of(case, "cuda"), torch.set_grad_enabled(training):
                output = model(**inputs)
            ledger.mark("forward")
            if training:
                memory_models.backward(output)
            del output
            own_gradients(ledger, model)
            ledger.mark("backward")
            if optimizer:
                optimizer.step()
                own_states(ledger, optimizer)
            ledger.mark("states")
            if optimizer:
                optimizer.step()
            ledger.mark("optimizer")
            model.zero_grad(set_to_none=True)
            ledger.mark("end")
    return ledger, sum(p.numel() for p in model.parameters())


def own_gradients(ledger, model):
    for parameter in model.parameters():
        if parameter.grad is not None:
            ledger.own(parameter.grad, "gradient", "gradient")


def own_states(ledger, optimizer):
    import torch
    for state in optimizer.state.values():
        for name, tensor in state.items():
            if torch.is_tensor(tensor) and name != "step":
                ledger.own(tensor, "optimizer state", "optimizer")


def two_steps(ledger):
    """Events of two whole steps, and where the second step's phases end. The same pass is used twice: the first step with the
    optimizer's first step, the second with its second."""
    start, forward, backward, states, optimizer, end = (place for _, place in ledger.marks)
    events = ledger.events[:states] + ledger.events[optimizer:end]
    copies, bounds = {}, {}
    for phase, begin, stop in (("forward", start, forward), ("backward", forward, backward), ("optimizer", states, optimizer)):
        first = len(events)
        for record, sign in ledger.events[begin:stop]:
            if sign > 0:
                copies[record] = Record(record.bytes, record.maker, record.kind)
            events.append((copies.get(record, record), sign))
        bounds[phase] = (first, len(events))
    return events, bounds


def replay(events, bounds):
    """By phase of the second step: the highest total and the event before which it is reached. And the allocator's figures."""
    allocator, address = caching_allocator.CachingAllocator(), {}
    total, totals = 0, [0]
    for place, (record, sign) in enumerate(events):
        if place == bounds["forward"][0]:
            allocator.peak_allocated = allocator.allocated
        if sign > 0:
            total += record.size
            address[record] = allocator.allocate(record.size)
        else:
            total -= record.size
            allocator.free(address.pop(record))
        totals.append(total)
    peaks = {phase: max((totals[place], place) for place in range(begin, end + 1)) for phase, (begin, end) in bounds.items()}
    return peaks, allocator


def living(events, place):
    """The records that live before event `place`."""
    live = {}
    for record, sign in events[:place]:
        if sign > 0:
            live[record] = None
        else:
            live.pop(record)
    return list(live)


def reference(case):
    """The row of a case, and (bytes, count, what) of the peak, the largest first."""
    import torch
    import transformers
    ledger, count = run(case)
    events, bounds = two_steps(ledger)
    peaks, allocator = replay(events, bounds)
    kinds = {"parameter": "weights", "buffer": "buffers", "input": "inputs", "optimizer": "optimizer"}
    row = {**case, "parameters": count, "torch": torch.__version__, "transformers": transformers.__version__}
    after = {phase: living(events, end) for phase, (_, end) in bounds.items()}
    for kind, name in kinds.items():
        row[f"{name}_bytes"] = sum(r.bytes for r in after["forward"] if r.kind == kind)
    row["gradients_bytes"] = sum(r.bytes for r in after["backward"] if r.kind == "gradient")
    row["saved_bytes"] = sum(r.size for r in after["forward"] if r.kind not in kinds)
    for phase, (highest, _) in peaks.items():
        row[f"{phase}_peak_bytes"] = highest
    total, place = max(peaks.values())
    row.update(peak_bytes=total, allocated_bytes=allocator.peak_allocated, reserved_bytes=allocator.reserved)
    contents = {}
    for record in living(events, place):
        what = record.kind if record.kind in (*kinds, "gradient") else record.maker
        size, number = contents.get(what, (0, 0))
        contents[what] = (size + record.size, number + 1)
    return row, sorted(((size, number, what) for what, (size, number) in contents.items()), reverse=True)


def attempt(case):
    start = time.perf_counter()
    try:
        return (*reference(case), None, time.perf_counter() - start)
    except Exception as error:
        if os.environ.get("TILECAST_TRACE"):
            raise
        return case, [], f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", time.perf_counter() - start


def answer_for_values():
    """Fake tensors hold no values. Where Transformers looks at them, it gets the answer of whole sequences: nothing is padded or
    packed, so masks that change nothing are left out, as on a GPU."""
    import torch

    from transformers import initialization, masking_utils
    masking_utils.is_tracing = lambda tensor=None: False
    masking_utils.fast_all = lambda mask: True
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    torch.Tensor.item = lambda self: 1.0  # norms that Adafactor reads
    for module in (torch.nn.init, initialization):  # reads a number back
        module.trunc_normal_ = lambda tensor, *args, **kwargs: tensor


def start_worker(library):
    warnings.filterwarnings("ignore")
    fake_cuda.install(library)
    answer_for_values()
    import torch
    torch.set_num_threads(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.abspath(__file__))
    parser.add_argument("-o", "--output", help="CSV file; standard output without it")
    parser.add_argument("--cases", default=os.path.join(here, "memory_cases.csv"))
    parser.add_argument("--only", default="", help="only cases whose row has this text, fields separated by blanks")
    parser.add_argument("--explain", type=int, default=0, metavar="N", help="the N largest contents of each peak")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    cases = [case for case in memory_models.read_cases(args.cases)
             if args.only in " ".join(str(case[key]) for key in KEYS)]
    stream = open(args.output, "w", newline="", encoding="utf-8") if args.output else sys.stdout
    writer = csv.DictWriter(stream, KEYS + OUTPUTS, lineterminator="\n")
    writer.writeheader()
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor(
            args.jobs, multiprocessing.get_context("spawn"), start_worker, (fake_cuda.build(folder),)) as pool:
        for row, contents, error, seconds in pool.map(attempt, cases):
            name = " ".join(str(row[key]) for key in KEYS)
            failed += error is not None
            print(f"{seconds:5.1f} s {name}: {error or str(row['peak_bytes'] >> 20) + ' MiB'}", file=sys.stderr, flush=True)
            if error is None:
                writer.writerow(row)
                stream.flush()
            for size, number, what in contents[:args.explain]:
                print(f"      {size / 2**20:10.1f} MiB {number:6} x {what}", file=sys.stderr)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
