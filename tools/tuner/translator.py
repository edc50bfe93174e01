"""The translator: from the sizes of a problem to tuning parameters, token by token.

A transformer: the encoder reads the sizes (a token each), features of the whole problem, the solver
and the chip; the decoder writes the parameters and attends to all. src/tuning/translator.cc runs
it."""

import time

import numpy
import torch

from . import container, features
from .training import Checkpoint

FIELD_FEATURES = 24
HEADS, DROPOUT, BATCH = 4, 0.1, 128


class Language:
    """What a translator reads and writes. `values`: all values that a parameter takes."""

    def __init__(self, solvers, chips, fields, values, most_tokens, inner=128):
        self.solvers, self.chips, self.fields = solvers, chips, fields
        self.values, self.most_tokens = values, most_tokens
        self.width, self.inner, self.encoders, self.decoders = 64, inner, 1, 2
        self.start = len(values)


def field_features(value):
    """What one size says: magnitude, divisibility, and the small values one by one."""
    value = value.astype(float)
    log = features.lg(numpy.maximum(value, 0.5))
    columns = [log / 8, log - numpy.floor(log), value == 0, value == 1]
    columns += [numpy.mod(value, 2**j) == 0 for j in range(1, 9)]
    columns += [numpy.mod(value, 3) == 0, numpy.mod(value, 5) == 0, numpy.mod(value, 7) == 0]
    columns += [numpy.ceil(value / t) * t / numpy.maximum(value, 1) - 1 for t in (4, 16, 64, 256)]
    columns += [value == v for v in (2, 3, 4, 7, 14)]
    return numpy.stack([c.astype(float) for c in columns], 1).clip(-4, 4).astype("f4")


def drop(x, training):
    return torch.nn.functional.dropout(x, DROPOUT, training)


class Block(torch.nn.Module):
    """Attention with a residual, normalized before."""

    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))

    def forward(self, x, memory=None, causal=False):
        y = self.norm(x)
        memory = y if memory is None else memory
        split = lambda t: t.view(t.shape[0], t.shape[1], HEADS, -1).transpose(1, 2)
        a = torch.nn.functional.scaled_dot_product_attention(
            split(self.q(y)), split(self.k(memory)), split(self.v(memory)), is_causal=causal)
        return x + drop(self.o(a.transpose(1, 2).reshape(x.shape)), self.training)


class Inner(torch.nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.a, self.b = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)

    def forward(self, x):
        return x + drop(self.b(torch.relu(self.a(self.norm(x)))), self.training)


class Translator(torch.nn.Module):
    def __init__(self, language, overall):
        super().__init__()
        width, fields, solvers = language.width, len(language.fields), len(language.solvers)
        self.language = language
        self.field = torch.nn.Parameter(torch.randn(fields, FIELD_FEATURES, width) * 0.1)
        self.field_bias = torch.nn.Parameter(torch.randn(fields, width) * 0.1)
        self.overall = torch.nn.Linear(overall, width)
        self.solver = torch.nn.Embedding(solvers, width)
        self.chip = torch.nn.Embedding(len(language.chips), width)
        self.encoder = torch.nn.ModuleList(
            [m for _ in range(language.encoders) for m in (Block(width), Inner(width, language.inner))])
        self.memory_norm = torch.nn.LayerNorm(width)
        self.token = torch.nn.Embedding(len(language.values) + 1, width)
        # A position of a solver is a parameter of its own.
        self.position = torch.nn.Parameter(torch.randn(solvers, language.most_tokens, width) * 0.1)
        self.decoder = torch.nn.ModuleList(
            [m for _ in range(language.decoders)
             for m in (Block(width), Block(width), Inner(width, language.inner))])
        self.norm = torch.nn.LayerNorm(width)
        self.out = torch.nn.Linear(width, len(language.values))

    def remember(self, fields, overall, solver, chip):
        x = torch.einsum("bfi,fiw->bfw", fields, self.field) + self.field_bias
        rest = [self.overall(overall), self.solver(solver), self.chip(chip)]
        x = drop(torch.cat([x, torch.stack(rest, 1)], 1), self.training)
        for layer in self.encoder:
            x = layer(x)
        return self.memory_norm(x)

    def decode(self, memory, solver, before):
        """Logits of the next value after each prefix; `before`: the start, then values."""
        x = drop(self.token(before) + self.position[solver, :before.shape[1]], self.training)
        for i in range(self.language.decoders):
            x = self.decoder[3 * i](x, causal=True)
            x = self.decoder[3 * i + 1](x, memory)
            x = self.decoder[3 * i + 2](x)
        return self.out(self.norm(x))


class Rows:
    """All rows of a language: sizes [row, field], features [row, feature], solver and chip as
    places in the language's lists, tokens as places in its values (-1 after the end)."""

    def __init__(self, language, sizes, overall, solver, chip, tokens):
        self.language, self.raw, self.tokens = language, overall, torch.tensor(tokens)
        self.fields = torch.tensor(
            numpy.stack([field_features(sizes[:, i]) for i in range(sizes.shape[1])], 1))
        self.solver, self.chip = torch.tensor(solver), torch.tensor(chip)

    def scale(self, rows):
        low, high = self.raw[rows].min(0), self.raw[rows].max(0)
        mean, spread = self.raw[rows].mean(0), self.raw[rows].std(0)
        spread = numpy.where(spread < 0.05, 1e6, spread).astype("f4")
        self.range = numpy.stack([low, high, mean, 1 / spread])
        self.overall = torch.tensor(((self.raw.clip(low, high) - mean) / spread).clip(-4, 4))

    def before(self, batch):
        start = torch.full((len(batch), 1), self.language.start)
        return torch.cat([start, self.tokens[batch][:, :-1].clamp(min=0)], 1)

    def logits(self, net, batch, length):
        memory = net.remember(self.fields[batch], self.overall[batch], self.solver[batch],
                              self.chip[batch])
        return net.decode(memory, self.solver[batch], self.before(batch)[:, :length])


def optimizers_of(net):
    """Muon (Jordan et al. 2024) for the matrices between layers, AdamW for the rest: half the epochs
    of AdamW alone (research/experiments.md)."""
    matrices = [p for name, p in net.named_parameters()
                if p.ndim == 2 and name.startswith(("encoder", "decoder"))]
    known = {id(p) for p in matrices}
    rest = [p for p in net.parameters() if id(p) not in known]
    return {"muon": torch.optim.Muon(matrices, lr=0.02, weight_decay=1e-2),
            "adamw": torch.optim.AdamW(rest, lr=3e-3, weight_decay=1e-2)}


def train(rows, index, epochs, seed, checkpoint=None, report=print, name="parameters"):
    """The translator after `epochs` over the rows of `index`; goes on at the checkpoint's epoch."""
    torch.manual_seed(seed)
    rows.scale(index.numpy())
    net = Translator(rows.language, rows.raw.shape[1])
    # Batches of one length waste no work; short ones are cut.
    length = (rows.tokens >= 0).sum(1)
    lengths = length[index].unique().tolist()
    steps = sum((int((length[index] == l).sum()) + BATCH - 1) // BATCH for l in lengths)
    optimizers = optimizers_of(net)
    schedules = {name: torch.optim.lr_scheduler.OneCycleLR(
        optimizer, optimizer.defaults["lr"], total_steps=epochs * steps, pct_start=0.1,
        cycle_momentum=False) for name, optimizer in optimizers.items()}
    saved = Checkpoint(checkpoint, {"net": net, **optimizers} | {
        f"{name} schedule": schedule for name, schedule in schedules.items()})
    start = time.time()
    for epoch in range(saved.load(), epochs):
        batches = []
        for l in lengths:
            mine = index[length[index] == l]
            batches += list(mine[torch.randperm(len(mine))].split(BATCH))
        total = 0.0
        net.train()
        for at in torch.randperm(len(batches)).tolist():
            batch = batches[at]
            l = int(length[batch[0]])
            loss = torch.nn.functional.cross_entropy(rows.logits(net, batch, l).flatten(0, 1),
                                                     rows.tokens[batch][:, :l].flatten())
            net.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            for step in (*optimizers.values(), *schedules.values()):
                step.step()
            total += loss.item()
        report(f"{name}: epoch {epoch + 1}/{epochs}, loss {total / len(batches):.4f}, "
               f"{time.time() - start:.0f} s")
        saved.save(epoch + 1)
    return net.eval()


def search(net, rows, index, beam=20):
    """[row, beam, token]: the most likely strings of rows of one length, the best first. Without
    the rules of legality, which src/tuning/beam.cc adds."""
    length = int((rows.tokens[index[0]] >= 0).sum())
    found = []
    with torch.no_grad():
        for batch in index.split(256):
            memory = net.remember(rows.fields[batch], rows.overall[batch], rows.solver[batch],
                                  rows.chip[batch])
            count = len(batch)
            strings = torch.full((count, 1, 1), rows.language.start)
            score = torch.zeros(count, 1)
            for _ in range(length):
                width = strings.shape[1]
                logits = net.decode(memory.repeat_interleave(width, 0),
                                    rows.solver[batch].repeat_interleave(width, 0),
                                    strings.view(count * width, -1))[:, -1]
                step = torch.log_softmax(logits, 1).view(count, width, -1) + score[:, :, None]
                values = step.shape[2]
                score, at = step.flatten(1).topk(min(beam, width * values), 1)
                before = strings.gather(1, (at // values)[:, :, None].expand(-1, -1, strings.shape[2]))
                strings = torch.cat([before, (at % values)[:, :, None]], 2)
            found.append(strings[:, :, 1:])
    return torch.cat(found)


def export(path, net, rows, facts):
    """Writes the container that src/tuning/translator.cc reads; returns its bytes."""
    language = net.language
    payload = container.Payload()
    payload.add("range", rows.range)
    for name, parameter in net.state_dict().items():
        value = parameter.detach().numpy()
        if value.ndim == 3:
            value = value.reshape(-1, value.shape[-1])
        elif name.endswith("weight") and value.ndim == 2 and not name.startswith(
                ("solver", "chip", "token")):
            value = value.T
        payload.add(name, value)
    chips = [dict(features.read_chip(alias), name=alias) for alias in language.chips]
    header = {"kind": "parameters", "solvers": language.solvers, "fields": language.fields,
              "features": rows.raw.shape[1], "most_tokens": language.most_tokens,
              "chips": [{k: c[k] for k in ("name", "units", "clock", "bandwidth", "matrix")}
                        for c in chips],
              "values": language.values, "width": language.width, "heads": HEADS, "inner": language.inner,
              "encoders": language.encoders, "decoders": language.decoders, **facts}
    return payload.write(path, header)
