"""Models that Transformers does not bring: a diffusion-style U-Net and a DLRM-style recommender."""

import torch
from torch import nn


class Block(nn.Module):
    """Two 3×3 convolutions with group norm, SiLU and a residual connection."""

    def __init__(self, channels_in, channels):
        super().__init__()
        self.norm1 = nn.GroupNorm(min(32, channels_in // 4), channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.norm2 = nn.GroupNorm(min(32, channels // 4), channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.skip = nn.Conv2d(channels_in, channels, 1) if channels_in != channels else nn.Identity()

    def forward(self, x):
        y = self.conv1(nn.functional.silu(self.norm1(x)))
        return self.conv2(nn.functional.silu(self.norm2(y))) + self.skip(x)


class Attention(nn.Module):
    """Self-attention over the pixels, heads of 64 channels."""

    def __init__(self, channels):
        super().__init__()
        self.heads = max(1, channels // 64)
        self.norm = nn.GroupNorm(min(32, channels // 4), channels)
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        n, c, h, w = x.shape
        pixels = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = self.qkv(pixels).view(n, h * w, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, h * w, c)
        return x + self.out(y).transpose(1, 2).view(n, c, h, w)


class UNet(nn.Module):
    """Down and up again, two blocks a resolution, attention on all but the finest."""

    def __init__(self, channels, image_size, in_channels=4):
        super().__init__()
        self.image_size, self.in_channels = image_size, in_channels
        self.first = nn.Conv2d(in_channels, channels[0], 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        before = channels[0]
        for level, width in enumerate(channels):
            attention = Attention(width) if level else nn.Identity()
            self.down.append(nn.ModuleList([Block(before, width), Block(width, width), attention]))
            before = width
        for level, width in reversed(list(enumerate(channels))):
            attention = Attention(width) if level else nn.Identity()
            self.up.append(nn.ModuleList([Block(before + width, width), Block(width, width), attention]))
            before = width
        self.last = nn.Conv2d(channels[0], in_channels, 3, padding=1)

    def forward(self, x):
        x, skips = self.first(x), []
        for level, (a, b, attention) in enumerate(self.down):
            x = attention(b(a(x)))
            skips.append(x)
            if level + 1 < len(self.down):
                x = nn.functional.avg_pool2d(x, 2)
        for a, b, attention in self.up:
            skip = skips.pop()
            if x.shape[-1] != skip.shape[-1]:
                x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = attention(b(a(torch.cat([x, skip], dim=1))))
        return self.last(x)


class Dlrm(nn.Module):
    """Naumov et al. 2019: embedding bags and a bottom MLP, pairwise dot products, a top MLP."""

    def __init__(self, tables, rows, dim, pooling, bottom, top, dense=13):
        super().__init__()
        assert bottom[-1] == dim
        self.rows, self.pooling, self.dense = rows, pooling, dense
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, dim, mode="sum") for _ in range(tables))
        self.bottom = _mlp(dense, bottom)
        pairs = (tables + 1) * tables // 2
        self.top = _mlp(dim + pairs, top)
        lower = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("lower", lower, persistent=False)

    def forward(self, dense, ids):
        # ids: [tables, batch, pooling]
        x = self.bottom(dense)
        vectors = torch.stack([x, *(bag(row) for bag, row in zip(self.bags, ids))], dim=1)
        dots = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.lower[0], self.lower[1]]
        return self.top(torch.cat([x, dots], dim=1))


def _mlp(width, widths):
    layers = []
    for index, out in enumerate(widths):
        layers += [nn.Linear(width, out)] + ([nn.ReLU()] if index + 1 < len(widths) else [])
        width = out
    return nn.Sequential(*layers)
