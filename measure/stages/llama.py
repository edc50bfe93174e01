"""A decoder of Llama's kind whose training step and decode step can be captured in a CUDA graph."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, hidden, heads, kv_heads, inner):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.norm1, self.norm2 = nn.RMSNorm(hidden, eps=1e-5), nn.RMSNorm(hidden, eps=1e-5)
        self.qkv = nn.Linear(hidden, (heads + 2 * kv_heads) * self.size, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.gate_up, self.down = nn.Linear(hidden, 2 * inner, bias=False), nn.Linear(inner, hidden, bias=False)

    def heads_of(self, x, cos, sin):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, -1, self.size).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.kv_heads, self.kv_heads], 1)
        return turned(q, cos, sin), turned(k, cos, sin), v

    def rest(self, x, attended):
        x = x + self.out(attended.transpose(1, 2).reshape(x.shape))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)

    def forward(self, x, cos, sin):
        q, k, v = self.heads_of(x, cos, sin)
        return self.rest(x, functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))

    def decode(self, x, cos, sin, keys, values):
        """One token a sequence; the cache's last place is the token's."""
        q, k, v = self.heads_of(x, cos, sin)
        keys[:, :, -1:].copy_(k)
        values[:, :, -1:].copy_(v)
        return self.rest(x, functional.scaled_dot_product_attention(q, keys, values, enable_gqa=True))


def turned(x, cos, sin):
    low, high = x.chunk(2, -1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


class Llama(nn.Module):
    def __init__(self, hidden=2048, layers=12, heads=32, kv_heads=8, inner=8192, vocabulary=32000):
        super().__init__()
        self.size = hidden // heads
        self.table = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, kv_heads, inner) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(hidden, eps=1e-5), nn.Linear(hidden, vocabulary, bias=False)

    def angles(self, positions, dtype):
        rates = 1e4 ** (-torch.arange(0, self.size, 2, device=positions.device) / self.size)
        angles = positions[:, None] * rates
        return angles.cos().to(dtype), angles.sin().to(dtype)

    def forward(self, ids):
        x = self.table(ids)
        cos, sin = self.angles(torch.arange(ids.shape[1], device=ids.device), x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))

    def loss(self, ids):
        return functional.cross_entropy(self(ids).flatten(0, 1).float(), ids.flatten())

    def decode(self, ids, cache):
        x = self.table(ids)
        cos, sin = self.angles(torch.full((1,), cache[0][0].shape[2] - 1, device=ids.device), x.dtype)
        for block, (keys, values) in zip(self.blocks, cache):
            x = block.decode(x, cos, sin, keys, values)
        return self.head(self.norm(x)).argmax(-1)

    def products(self):
        """Weights that each token is multiplied with."""
        return sum(p.numel() for name, p in self.named_parameters() if p.dim() == 2 and not name.startswith("table"))


def made(bench, **sizes):
    tiny = dict(hidden=64, layers=2, heads=4, kv_heads=2, inner=128, vocabulary=128)
    with torch.device(bench.device):
        return Llama(**(tiny if bench.small else sizes)).to(torch.bfloat16)


def training_step(bench, batch=4, length=2048, capturable=True, **sizes):
    """(model, call of a whole training step in bf16 with a fused AdamW)."""
    model = made(bench, **sizes)
    batch, length = (2, 16) if bench.small else (batch, length)
    ids = torch.randint(model.head.out_features, (batch, length), device=bench.device)
    options = {} if bench.dry else {"fused": True, "capturable": capturable}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **options)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model.loss(ids).backward()
        optimizer.step()
    return model, step, batch * length


def decode_step(bench, batch=16, cached=4096, **sizes):
    """(model, call of one decode step, bytes of its cache)."""
    model = made(bench, **sizes)
    batch, cached = (2, 16) if bench.small else (batch, cached)
    block = model.blocks[0]
    shape = (batch, block.kv_heads, cached, block.size)
    cache = [tuple(bench.uniform(shape, torch.bfloat16) for _ in range(2)) for _ in model.blocks]
    ids = torch.randint(model.head.out_features, (batch, 1), device=bench.device)

    def step():
        with torch.no_grad():
            return model.decode(ids, cache)
    return model, step, batch, sum(k.numel() * 4 for k, _ in cache)
