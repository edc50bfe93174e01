"""The parameter model: from a problem to the tuning parameters of a solver, token by token.

A transformer: the encoder reads the sizes of the problem (a token each), its features, the solver
and the chip; the decoder writes the parameters and attends to both. One model serves all solvers."""

import pathlib
import time

import numpy
import pandas
import torch

from . import container, features

SOLVERS = ["ConvAsm1x1U", "ConvAsmBwdWrW1x1", "ConvHipImplicitGemmBwdDataV1R1",
           "ConvHipImplicitGemmV4R1Fwd", "ConvHipImplicitGemmV4R1WrW", "ConvHipImplicitGemmV4R4Fwd",
           "ConvHipImplicitGemmV4R4WrW", "ConvMlirIgemmBwd", "ConvMlirIgemmFwd", "ConvMlirIgemmWrW",
           "ConvOclDirectFwd", "ConvOclDirectFwd1x1"]
CHIPS = {"gfx900": "gfx900_56", "gfx906": "gfx906_60"}
# All values that a parameter takes.
VALUES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 2048]
START = len(VALUES)
FIELDS = ["n", "in", "out", "oh", "ow", "pixels", "work", "r", "s", "pad", "stride", "dil", "group"]
FIELD_FEATURES, MOST_TOKENS = 24, 16
WIDTH, HEADS, INNER, ENCODERS, DECODERS, DROPOUT = 64, 4, 128, 1, 2, 0.1
BATCH = 256


def read(folder):
    """All rows with their tokens as indices of VALUES; -1 after the end."""
    frames, tokens = [], []
    for solver in SOLVERS:
        frame = pandas.read_csv(pathlib.Path(folder) / f"{solver}.csv.xz")
        names = list(frame.columns[list(frame.columns).index("params") + 1:])
        index = numpy.full((len(frame), MOST_TOKENS), -1, "i8")
        for i, name in enumerate(names):
            index[:, i] = [VALUES.index(v) for v in frame[name].values]
        keep = frame.drop(columns=names).assign(solver=solver)
        # Only oh and ow are known of gradients with a stride: the least input that gives them.
        for size, out, window in (("h", "oh", "r"), ("w", "ow", "s")):
            axis = "hw"["hw".index(size)]
            least = ((keep[out] - 1) * keep["stride_" + axis] + 1 - 2 * keep["pad_" + axis]
                     + (keep[window] - 1) * keep["dil_" + axis])
            keep[size] = numpy.where(keep[size] == 0, numpy.maximum(least, 1), keep[size])
        frames.append(keep)
        tokens.append(index)
    return pandas.concat(frames, ignore_index=True), numpy.concatenate(tokens)


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


def encode(table):
    """[row, field, feature] of the sizes, and the features of the solver model."""
    forward = (table.direction == "F").values
    c, k = table.c.values, table.k.values
    n, ohow = table.n.values, table.oh.values * table.ow.values
    sizes = [n, numpy.where(forward, c, k), numpy.where(forward, k, c), table.oh.values,
             table.ow.values, ohow, n * ohow, table.r.values, table.s.values, table.pad_h.values,
             table.stride_h.values, table.dil_h.values, table.group.values]
    fields = numpy.stack([field_features(v) for v in sizes], 1)
    overall = numpy.zeros((len(table), 98), "f4")
    for arch, alias in CHIPS.items():
        where = numpy.flatnonzero(table.arch.values == arch)
        if len(where):
            overall[where] = features.features(table.iloc[where], features.read_chip(alias))[0]
    return fields, overall


class Block(torch.nn.Module):
    """Attention with a residual, normalized before."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x, memory=None, causal=False):
        y = self.norm(x)
        memory = y if memory is None else memory
        split = lambda t: t.view(t.shape[0], t.shape[1], HEADS, WIDTH // HEADS).transpose(1, 2)
        a = torch.nn.functional.scaled_dot_product_attention(
            split(self.q(y)), split(self.k(memory)), split(self.v(memory)), is_causal=causal)
        return x + drop(self.o(a.transpose(1, 2).reshape(x.shape)), self.training)


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.a, self.b = torch.nn.Linear(WIDTH, INNER), torch.nn.Linear(INNER, WIDTH)

    def forward(self, x):
        return x + drop(self.b(torch.relu(self.a(self.norm(x)))), self.training)


def drop(x, training):
    return torch.nn.functional.dropout(x, DROPOUT, training)


class Translator(torch.nn.Module):
    def __init__(self, overall, chips=len(CHIPS)):
        super().__init__()
        self.field = torch.nn.Parameter(torch.randn(len(FIELDS), FIELD_FEATURES, WIDTH) * 0.1)
        self.field_bias = torch.nn.Parameter(torch.randn(len(FIELDS), WIDTH) * 0.1)
        self.overall = torch.nn.Linear(overall, WIDTH)
        self.solver = torch.nn.Embedding(len(SOLVERS), WIDTH)
        self.chip = torch.nn.Embedding(chips, WIDTH)
        self.encoder = torch.nn.ModuleList([m for _ in range(ENCODERS) for m in (Block(), Inner())])
        self.memory_norm = torch.nn.LayerNorm(WIDTH)
        self.token = torch.nn.Embedding(len(VALUES) + 1, WIDTH)
        # A position of a solver is a parameter of its own.
        self.position = torch.nn.Parameter(torch.randn(len(SOLVERS), MOST_TOKENS, WIDTH) * 0.1)
        self.decoder = torch.nn.ModuleList(
            [m for _ in range(DECODERS) for m in (Block(), Block(), Inner())])
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.out = torch.nn.Linear(WIDTH, len(VALUES))

    def remember(self, fields, overall, solver, chip):
        x = torch.einsum("bfi,fiw->bfw", fields, self.field) + self.field_bias
        rest = [self.overall(overall), self.solver(solver), self.chip(chip)]
        x = drop(torch.cat([x, torch.stack(rest, 1)], 1), self.training)
        for layer in self.encoder:
            x = layer(x)
        return self.memory_norm(x)

    def decode(self, memory, solver, before):
        """Logits of the next value after each prefix; `before`: START, then values."""
        x = drop(self.token(before) + self.position[solver, :before.shape[1]], self.training)
        for i in range(DECODERS):
            x = self.decoder[3 * i](x, causal=True)
            x = self.decoder[3 * i + 1](x, memory)
            x = self.decoder[3 * i + 2](x)
        return self.out(self.norm(x))


class Rows:
    def __init__(self, table, tokens):
        self.table, self.tokens = table, torch.tensor(tokens)
        fields, overall = encode(table)
        self.fields, self.raw = torch.tensor(fields), overall
        self.solver = torch.tensor([SOLVERS.index(s) for s in table.solver])
        self.chip = torch.tensor([list(CHIPS).index(a) for a in table.arch])

    def scale(self, rows):
        low, high = self.raw[rows].min(0), self.raw[rows].max(0)
        mean, spread = self.raw[rows].mean(0), self.raw[rows].std(0)
        spread = numpy.where(spread < 0.05, 1e6, spread).astype("f4")
        self.range = numpy.stack([low, high, mean, 1 / spread])
        self.overall = torch.tensor(((self.raw.clip(low, high) - mean) / spread).clip(-4, 4))

    def before(self, batch):
        tokens = self.tokens[batch]
        start = torch.full((len(batch), 1), START)
        return torch.cat([start, tokens[:, :-1].clamp(min=0)], 1)


def train(rows, index, epochs, seed, checkpoint=None, report=print):
    torch.manual_seed(seed)
    rows.scale(index.numpy())
    net = Translator(rows.raw.shape[1])
    # Batches of one length waste no work; short ones are cut.
    length = (rows.tokens >= 0).sum(1)
    steps = sum((int((length[index] == l).sum()) + BATCH - 1) // BATCH
                for l in length[index].unique())
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * steps,
                                                   pct_start=0.1)
    first = 0
    if checkpoint and pathlib.Path(checkpoint).exists():
        state = torch.load(checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["rng"])
        first = state["epoch"]
    start = time.time()
    for epoch in range(first, epochs):
        batches = []
        for l in length[index].unique().tolist():
            mine = index[length[index] == l]
            batches += list(mine[torch.randperm(len(mine))].split(BATCH))
        total = 0.0
        net.train()
        for at in torch.randperm(len(batches)).tolist():
            batch = batches[at]
            l = int(length[batch[0]])
            memory = net.remember(rows.fields[batch], rows.overall[batch], rows.solver[batch],
                                  rows.chip[batch])
            logits = net.decode(memory, rows.solver[batch], rows.before(batch)[:, :l])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1),
                                                     rows.tokens[batch][:, :l].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        report(f"parameters: epoch {epoch + 1}/{epochs}, loss {total / len(batches):.4f}, "
               f"{time.time() - start:.0f} s")
        if checkpoint:
            torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(),
                        "schedule": schedule.state_dict(), "rng": torch.get_rng_state(),
                        "epoch": epoch + 1}, checkpoint)
    return net.eval()


def export(path, net, rows, facts):
    payload = container.Payload()
    payload.add("range", rows.range)
    state = {k: v.detach().numpy() for k, v in net.state_dict().items()}
    for name, value in state.items():
        if value.ndim == 3:
            value = value.reshape(-1, value.shape[-1])
        elif name.endswith("weight") and value.ndim == 2 and not name.startswith(
                ("solver", "chip", "token")):
            value = value.T
        payload.add(name, value)
    chips = [features.read_chip(alias) for alias in CHIPS.values()]
    header = {"kind": "parameters", "solvers": SOLVERS, "most_tokens": MOST_TOKENS,
              "chips": [{k: c[k] for k in ("units", "clock", "bandwidth")} for c in chips],
              "values": VALUES, "width": WIDTH, "heads": HEADS, "inner": INNER,
              "encoders": ENCODERS, "decoders": DECODERS, **facts}
    return payload.write(path, header)
