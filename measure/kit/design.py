"""Shapes to measure: log-uniform with the edges of tiles, and the shapes of real models.

All draws are seeded: the same kit asks for the same cases in the same random order, so that a run
cut short is a fair sample and a later one goes on where it stopped.
"""

import math
import random

# Library tiles are multiples of these; a size one above an edge starts a new, nearly empty tile.
TILE_EDGES = (16, 32, 64, 128, 256)


def log_uniform(rng, low, high):
    """An integer from low to high, its logarithm uniform."""
    return max(low, min(high, round(math.exp(rng.uniform(math.log(low), math.log(high))))))


def matrix_size(rng, low, high, multiple=1):
    """Log-uniform; every third a multiple of a tile edge, every sixth that ± 1. `multiple` wins."""
    size = log_uniform(rng, low, high)
    kind = rng.random()
    if kind < 0.5:
        edge = rng.choice(TILE_EDGES)
        size = max(1, round(size / edge)) * edge
        if kind < 1 / 6:
            size += rng.choice((-1, 1))
    return max(low, -(-size // multiple) * multiple)


# Hidden size, feed-forward size, attention heads, key-value heads, vocabulary of published models
# (their config.json).
TRANSFORMERS = (
    (768, 3072, 12, 12, 50257),    # GPT-2
    (1024, 4096, 16, 16, 30522),   # BERT large
    (1280, 5120, 20, 20, 50257),   # GPT-2 large
    (2048, 8192, 16, 16, 50272),   # OPT 1.3B
    (2560, 10240, 32, 32, 50257),  # GPT-3 2.7B
    (4096, 11008, 32, 32, 32000),  # Llama-2-7B
    (4096, 14336, 32, 8, 128256),  # Llama-3-8B
    (5120, 25600, 64, 8, 151936),  # Qwen3-32B
    (8192, 28672, 64, 8, 128256),  # Llama-3-70B
)

# Channels in, channels out, image, filter, stride, groups of published networks' layers.
CONVOLUTIONS = (
    (3, 64, 224, 7, 2, 1), (64, 64, 56, 1, 1, 1), (64, 64, 56, 3, 1, 1), (64, 256, 56, 1, 1, 1),
    (256, 128, 56, 1, 1, 1), (128, 128, 56, 3, 2, 1), (512, 256, 28, 1, 1, 1), (256, 256, 28, 3, 2, 1),
    (256, 1024, 14, 1, 1, 1), (1024, 512, 14, 1, 1, 1), (512, 512, 14, 3, 2, 1),
    (512, 2048, 7, 1, 1, 1),                                                      # ResNet-50
    (96, 96, 56, 7, 1, 96), (192, 192, 28, 7, 1, 192), (384, 384, 14, 7, 1, 384),
    (3, 96, 224, 4, 4, 1),                                                        # ConvNeXt
    (32, 32, 112, 3, 1, 32), (144, 144, 56, 5, 2, 144), (672, 672, 14, 5, 1, 672),
    (112, 672, 14, 1, 1, 1),                                                      # EfficientNet
    (320, 320, 64, 3, 1, 1), (640, 640, 32, 3, 1, 1), (1280, 1280, 16, 3, 1, 1),  # U-Net
)


def generator(name):
    """A random source for one family, the same on every machine."""
    return random.Random(f"tilecast measurement kit, {name}")


def in_random_order(name, cases):
    """Without repeats, shuffled."""
    unique = list({tuple(sorted(case.items())): case for case in cases}.values())
    generator(name + ", order").shuffle(unique)
    return unique
