"""PyTorch's caching allocator of CUDA memory, replayed: which block each tensor gets, and what stays reserved.

Source: c10/cuda/CUDACachingAllocator.cpp with its default settings (no expandable segments, no split limit, one stream).
"""
import bisect

MIN_BLOCK = 512             # kMinBlockSize: every size is a multiple
SMALL_SIZE = 1 << 20        # kSmallSize: up to here the small pool, and the largest remainder a large block keeps
SMALL_BUFFER = 2 << 20      # kSmallBuffer: segments of the small pool
LARGE_BUFFER = 20 << 20     # kLargeBuffer: segments for sizes below MIN_LARGE
MIN_LARGE = 10 << 20        # kMinLargeAlloc
ROUND_LARGE = 2 << 20       # kRoundLarge: segments of larger sizes are multiples


def rounded(size):
    return max(MIN_BLOCK, -(-size // MIN_BLOCK) * MIN_BLOCK)


class CachingAllocator:
    """`allocate` gives a handle for `free`; allocated, reserved and their maxima are in bytes."""

    def __init__(self):
        self.allocated = self.peak_allocated = self.reserved = 0
        self._free = {True: [], False: []}  # small?: sorted (size, address)
        self._blocks = {}  # address: [size, segment, small?]; neighbours by address within the segment
        self._next = {}    # end address: address of the block before it
        self._top = 0

    def allocate(self, size):
        size = rounded(size)
        small = size <= SMALL_SIZE
        pool = self._free[small]
        place = bisect.bisect_left(pool, (size, 0))
        if place < len(pool):
            have, address = pool.pop(place)
        else:
            have = SMALL_BUFFER if small else LARGE_BUFFER if size < MIN_LARGE else -(-size // ROUND_LARGE) * ROUND_LARGE
            address = self._top
            self._top += have + LARGE_BUFFER  # a gap: segments never merge
            self.reserved += have
            self._put(address, have, address, small)
        rest = have - size
        if rest >= MIN_BLOCK if small else rest > SMALL_SIZE:
            segment = self._blocks[address][1]
            self._put(address, size, segment, small)
            self._put(address + size, rest, segment, small)
            bisect.insort(pool, (rest, address + size))
        else:
            size = have
        self.allocated += size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return address

    def free(self, address):
        size, segment, small = self._blocks[address]
        pool = self._free[small]
        self.allocated -= size
        before = self._next.get(address)
        if before is not None and self._take(pool, before, segment):
            size += self._blocks[before][0]
            del self._blocks[address]
            address = before
        after = address + size
        if after in self._blocks and self._take(pool, after, segment):
            size += self._blocks.pop(after)[0]
        self._put(address, size, segment, small)
        bisect.insort(pool, (size, address))

    def _put(self, address, size, segment, small):
        self._blocks[address] = [size, segment, small]
        self._next[address + size] = address

    def _take(self, pool, address, segment):
        """Removes a block from its pool if it is free and of the same segment."""
        if address not in self._blocks or self._blocks[address][1] != segment:
            return False
        entry = (self._blocks[address][0], address)
        place = bisect.bisect_left(pool, entry)
        if place == len(pool) or pool[place] != entry:
            return False
        pool.pop(place)
        return True
