#!/usr/bin/env python3
"""The replay of PyTorch's caching allocator (tests/pytorch/caching_allocator.py) keeps its rules."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "pytorch"))
from caching_allocator import CachingAllocator  # noqa: E402

MIB = 1 << 20


class CachingAllocatorTest(unittest.TestCase):
    def setUp(self):
        self.allocator = CachingAllocator()

    def test_small_sizes_share_a_segment_of_2_mib(self):
        for size in (1, 512, 513):
            self.allocator.allocate(size)
        self.assertEqual(self.allocator.allocated, 512 + 512 + 1024)
        self.assertEqual(self.allocator.reserved, 2 * MIB)

    def test_sizes_above_1_mib_share_segments_of_20_mib(self):
        self.allocator.allocate(3 * MIB)
        self.allocator.allocate(9 * MIB)
        self.assertEqual(self.allocator.allocated, 12 * MIB)
        self.assertEqual(self.allocator.reserved, 20 * MIB)

    def test_sizes_from_10_mib_get_segments_in_steps_of_2_mib(self):
        self.allocator.allocate(10 * MIB + 1)
        self.assertEqual(self.allocator.reserved, 12 * MIB)

    def test_a_rest_of_1_mib_stays_with_its_block(self):
        self.allocator.allocate(11 * MIB + 512)
        self.assertEqual(self.allocator.allocated, 12 * MIB)

    def test_a_freed_block_is_used_again_and_its_neighbours_join(self):
        blocks = [self.allocator.allocate(5 * MIB) for _ in range(4)]
        self.assertEqual(self.allocator.reserved, 20 * MIB)
        for block in (blocks[1], blocks[3], blocks[2]):
            self.allocator.free(block)
        self.allocator.allocate(9 * MIB)
        self.assertEqual(self.allocator.reserved, 20 * MIB)
        self.assertEqual(self.allocator.allocated, 14 * MIB)
        self.assertEqual(self.allocator.peak_allocated, 20 * MIB)

    def test_the_smallest_block_that_fits_is_taken(self):
        large, small = self.allocator.allocate(40 * MIB), self.allocator.allocate(30 * MIB)
        self.allocator.free(large)
        self.allocator.free(small)
        self.assertEqual(self.allocator.allocate(30 * MIB), small)

    def test_segments_do_not_join(self):
        for block in [self.allocator.allocate(20 * MIB), self.allocator.allocate(20 * MIB)]:
            self.allocator.free(block)
        self.allocator.allocate(40 * MIB)
        self.assertEqual(self.allocator.reserved, 80 * MIB)


if __name__ == "__main__":
    unittest.main()
