#!/usr/bin/env python3
"""The order of passes in torch.distributed.pipelining's zero-bubble schedules, for src/sim/pipeline_schedule_test.cc.

    tests/pytorch/pipeline_orders.py -o tests/data/pipeline_orders.csv

A row for each stage: passes in their order, as kind (F: forward, I: gradients of inputs, W: gradients of weights), part of the
stage, and micro-batch. Needs PyTorch, no GPU.
"""
import argparse
import csv
from types import SimpleNamespace

import torch
from torch.distributed.pipelining.schedules import ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble

SHAPES = ((2, 2), (2, 8), (3, 6), (4, 4), (4, 8), (4, 12), (8, 8), (8, 16))
FEW_OF_ZBV = ((4, 1), (4, 3), (3, 5))  # fewer micro-batches than fill the pipeline


def order(schedule, stages, microbatches, stage):
    parts = 2 if schedule is ScheduleZBVZeroBubble else 1
    shape = SimpleNamespace(pp_group_size=stages, num_stages=parts * stages, n_local_stages=parts, _n_microbatches=microbatches,
                            microbatches_per_round=microbatches // max(1, microbatches // stages))
    actions = schedule._calculate_single_rank_operations(shape, stage)
    return " ".join(f"{action.computation_type.value}{action.stage_index // stages}.{action.microbatch_index}"
                    for action in actions if action is not None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    output = parser.parse_args().output
    with open(output, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        file.write(f"# tests/pytorch/pipeline_orders.py, PyTorch {torch.__version__.split('+')[0]}\n")
        writer.writerow(["schedule", "stages", "microbatches", "stage", "passes"])
        for name, schedule, shapes in (("zero-bubble", ScheduleInterleavedZeroBubble, SHAPES),
                                       ("zb-v", ScheduleZBVZeroBubble, SHAPES + FEW_OF_ZBV)):
            for stages, microbatches in shapes:
                for stage in range(stages):
                    writer.writerow([name, stages, microbatches, stage, order(schedule, stages, microbatches, stage)])


if __name__ == "__main__":
    main()
