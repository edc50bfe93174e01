"""Writes the graphs (.tcg) of Gavel's seven jobs and of MISO's five models. Usage: make_models.py OUT [NAME ...]

Needs torch and the package tilecast (PYTHONPATH=<build>/python). Sizes come from the public code of each job, but for lines
that say `guess`.
"""

import sys
import torch
from torch import nn
import torch.nn.functional as F
from tilecast.torch import export_graph


# ResNet-18 for CIFAR (kuangliu/pytorch-cifar, models/resnet.py): no max pooling, 3x3 stem.
class Basic(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.short = nn.Sequential()
        if stride != 1 or cin != cout:
            self.short = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.short(x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        layers, cin = [], 64
        for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [Basic(cin, cout, stride), Basic(cout, cout, 1)]
            cin = cout
        self.layers = nn.Sequential(*layers)
        self.linear = nn.Linear(512, 10)

    def forward(self, x, target):
        y = self.layers(F.relu(self.bn1(self.conv1(x))))
        y = F.avg_pool2d(y, 4).flatten(1)
        return F.cross_entropy(self.linear(y), target)


# ResNet-50 (torchvision), ImageNet.
class Bottleneck(nn.Module):
    def __init__(self, cin, width, stride, first):
        super().__init__()
        cout = 4 * width
        self.conv1 = nn.Conv2d(cin, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, cout, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout)) if first else None

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        layers, cin = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                layers.append(Bottleneck(cin, width, stride if i == 0 else 1, i == 0))
                cin = 4 * width
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(2048, 1000)

    def forward(self, x, target):
        y = F.adaptive_avg_pool2d(self.layers(self.stem(x)), 1).flatten(1)
        return F.cross_entropy(self.fc(y), target)


# Transformer (jadore801120/attention-is-all-you-need-pytorch, 2018): post-norm, d_model 512, d_inner 2048, 6+6 layers, 8 heads.
class Attention(nn.Module):
    def __init__(self, d=512, h=8):
        super().__init__()
        self.q, self.k, self.v, self.fc = (nn.Linear(d, d) for _ in range(4))
        self.norm, self.h = nn.LayerNorm(d), h

    def forward(self, q, kv, mask):
        b, s, d = q.shape
        t, h = kv.shape[1], self.h
        # The public code makes contiguous copies of each head's rows.
        x = self.q(q).view(b, s, h, d // h).permute(2, 0, 1, 3).contiguous().view(-1, s, d // h)
        y = self.k(kv).view(b, t, h, d // h).permute(2, 0, 1, 3).contiguous().view(-1, t, d // h)
        z = self.v(kv).view(b, t, h, d // h).permute(2, 0, 1, 3).contiguous().view(-1, t, d // h)
        a = torch.bmm(x, y.transpose(1, 2)) / (d // h) ** 0.5
        a = a.masked_fill(mask.repeat(h, 1, 1), float("-inf"))
        a = F.dropout(torch.softmax(a, 2), 0.1)
        o = torch.bmm(a, z).view(h, b, s, d // h).permute(1, 2, 0, 3).contiguous().view(b, s, d)
        return self.norm(F.dropout(self.fc(o), 0.1) + q)


class Inner(nn.Module):
    def __init__(self, d=512, f=2048):
        super().__init__()
        self.a, self.b, self.norm = nn.Conv1d(d, f, 1), nn.Conv1d(f, d, 1), nn.LayerNorm(d)

    def forward(self, x):
        y = self.b(F.relu(self.a(x.transpose(1, 2)))).transpose(1, 2)
        return self.norm(F.dropout(y, 0.1) + x)


class Transformer(nn.Module):
    def __init__(self, source=9521, target=9521, d=512, layers=6):
        super().__init__()
        self.src, self.tgt = nn.Embedding(source, d), nn.Embedding(target, d)
        self.pos = nn.Embedding(64, d)
        self.enc = nn.ModuleList([nn.ModuleList([Attention(), Inner()]) for _ in range(layers)])
        self.dec = nn.ModuleList([nn.ModuleList([Attention(), Attention(), Inner()]) for _ in range(layers)])

    def forward(self, src, tgt, pos_s, pos_t, mask_s, mask_t, mask_c, pad_s, pad_t, gold):
        x = self.src(src) + self.pos(pos_s)
        for att, inner in self.enc:
            x = inner(att(x, x, mask_s) * pad_s) * pad_s
        y = self.tgt(tgt) + self.pos(pos_t)
        for att, cross, inner in self.dec:
            y = att(y, y, mask_t) * pad_t
            y = cross(y, x, mask_c) * pad_t
            y = inner(y) * pad_t
        logits = F.linear(y, self.tgt.weight) * 512**-0.5  # shared projection
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), gold)


# LM (pytorch/examples, word_language_model): LSTM, emsize 200, nhid 200, 2 layers, dropout 0.2, bptt 35; WikiText-2: 33,278 words.
class LM(nn.Module):
    def __init__(self, words=33278, size=200, hidden=200, layers=2):
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(words, size)
        self.rnn = nn.LSTM(size, hidden, layers, dropout=0.2)
        self.decoder = nn.Linear(hidden, words)

    def forward(self, x, h, c, target):
        y, _ = self.rnn(self.drop(self.encoder(x)), (h, c))
        y = self.decoder(self.drop(y))
        return F.cross_entropy(y.view(-1, y.shape[-1]), target)


# Recommendation (amoussawi/recoder, scripts for ML-20M): auto-encoder over the items of a mini-batch, hidden 200, tanh, noise 0.5, logistic
# loss, Adam. The sparse ratings become a dense matrix of users x items of the batch on the GPU.
class Recoder(nn.Module):
    def __init__(self, items=20108, hidden=200):
        super().__init__()
        self.en, self.de = nn.Embedding(items, hidden), nn.Embedding(items, hidden)
        self.en_bias, self.de_bias = nn.Parameter(torch.zeros(hidden)), nn.Embedding(items, 1)

    def forward(self, where, ratings, items, like):
        # to_dense of the sparse tensor: zeros, then a scatter of what is stored.
        x = torch.zeros_like(like).view(-1).index_add(0, where, ratings).view(like.shape)
        en, de, bias = self.en(items), self.de(items), self.de_bias(items)
        z = torch.mm(F.dropout(F.normalize(x, p=2.0, dim=1), 0.5), en) + self.en_bias
        y = torch.addmm(bias.t(), torch.tanh(z), de.t())
        # binary_cross_entropy_with_logits of PyTorch 1.4, which launches a kernel for each operation.
        m = (-y).clamp(min=0)
        return ((1 - x) * y + m + torch.log(torch.exp(-m) + torch.exp(-y - m))).sum() / like.shape[0]


# A3C (dgriff777/rl_a3c_pytorch): four convolutions, each with max pooling, LSTM cell of 512; 20 steps of a rollout, one image each.
class A3C(nn.Module):
    def __init__(self, actions=6, steps=20):
        super().__init__()
        self.steps = steps
        self.c = nn.ModuleList(
            [nn.Conv2d(1, 32, 5, 1, 2), nn.Conv2d(32, 32, 5, 1, 1), nn.Conv2d(32, 64, 4, 1, 1), nn.Conv2d(64, 64, 3, 1, 1)]
        )
        self.wx, self.wh = nn.Linear(1024, 2048), nn.Linear(512, 2048)
        self.critic, self.actor = nn.Linear(512, 1), nn.Linear(512, actions)

    def cell(self, x, h, c):
        i, f, g, o = (self.wx(x) + self.wh(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    def forward(self, *args):
        frames, h, c, action, reward = args[: self.steps], *args[self.steps :]
        loss = 0
        for x in frames:
            for conv in self.c:
                x = F.relu(F.max_pool2d(conv(x), 2, 2))
            h, c = self.cell(x.view(1, -1), h, c)
            value, logit = self.critic(h), self.actor(h)
            prob, log_prob = torch.softmax(logit, 1), torch.log_softmax(logit, 1)
            entropy = -(log_prob * prob).sum(1)
            advantage = reward - value
            loss = loss + 0.5 * advantage.pow(2) - log_prob.gather(1, action) * advantage - 0.01 * entropy
        return loss.sum()


# CycleGAN (eriklindernoren/PyTorch-GAN): 256x256, batch 1, generators with 9 blocks, PatchGAN discriminators.
class Generator(nn.Module):
    def __init__(self, blocks=9):
        super().__init__()
        m = [nn.ReflectionPad2d(3), nn.Conv2d(3, 64, 7), nn.InstanceNorm2d(64), nn.ReLU(inplace=True)]
        c = 64
        for _ in range(2):
            m += [nn.Conv2d(c, 2 * c, 3, 2, 1), nn.InstanceNorm2d(2 * c), nn.ReLU(inplace=True)]
            c *= 2
        self.head = nn.Sequential(*m)
        self.blocks = nn.ModuleList(
            [
                nn.Sequential(
                    nn.ReflectionPad2d(1),
                    nn.Conv2d(c, c, 3),
                    nn.InstanceNorm2d(c),
                    nn.ReLU(inplace=True),
                    nn.ReflectionPad2d(1),
                    nn.Conv2d(c, c, 3),
                    nn.InstanceNorm2d(c),
                )
                for _ in range(blocks)
            ]
        )
        m = []
        for _ in range(2):
            m += [nn.Upsample(scale_factor=2), nn.Conv2d(c, c // 2, 3, 1, 1), nn.InstanceNorm2d(c // 2), nn.ReLU(inplace=True)]
            c //= 2
        self.tail = nn.Sequential(*m, nn.ReflectionPad2d(3), nn.Conv2d(c, 3, 7), nn.Tanh())

    def forward(self, x):
        x = self.head(x)
        for b in self.blocks:
            x = x + b(x)
        return self.tail(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        m, cin = [], 3
        for i, cout in enumerate((64, 128, 256, 512)):
            m.append(nn.Conv2d(cin, cout, 4, 2, 1))
            if i:
                m.append(nn.InstanceNorm2d(cout))
            m.append(nn.LeakyReLU(0.2, inplace=True))
            cin = cout
        self.m = nn.Sequential(*m, nn.ZeroPad2d((1, 0, 1, 0)), nn.Conv2d(512, 1, 4, 1, 1))

    def forward(self, x):
        return self.m(x)


class CycleGAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.ab, self.ba, self.da, self.db = Generator(), Generator(), Discriminator(), Discriminator()

    def forward(self, a, b, old_a, old_b):
        one = lambda y: F.mse_loss(y, torch.ones_like(y))
        zero = lambda y: F.mse_loss(y, torch.zeros_like(y))
        ia, ib = F.l1_loss(self.ba(a), a), F.l1_loss(self.ab(b), b)
        fb, fa = self.ab(a), self.ba(b)
        loss = 5 * (ia + ib) / 2 + (one(self.db(fb)) + one(self.da(fa))) / 2
        loss = loss + 10 * (F.l1_loss(self.ba(fb), a) + F.l1_loss(self.ab(fa), b)) / 2
        loss = loss + (one(self.da(a)) + zero(self.da(old_a)) + one(self.db(b)) + zero(self.db(old_b))) / 2
        return loss


# MISO (TensorFlow 2.6, Keras examples).
class FordA(nn.Module):  # timeseries_classification_transformer: 4 blocks, heads of 256, inner size 4, sequence 500, 1 channel
    def __init__(self, h=4, size=256):
        super().__init__()
        self.h, self.size = h, size
        block = lambda: nn.ModuleDict(
            dict(
                n1=nn.LayerNorm(1),
                q=nn.Linear(1, h * size),
                k=nn.Linear(1, h * size),
                v=nn.Linear(1, h * size),
                o=nn.Linear(h * size, 1),
                n2=nn.LayerNorm(1),
                a=nn.Linear(1, 4),
                b=nn.Linear(4, 1),
            )
        )
        self.blocks = nn.ModuleList([block() for _ in range(4)])
        self.d1, self.d2 = nn.Linear(500, 128), nn.Linear(128, 2)

    def forward(self, x, target):
        b, s, _ = x.shape
        for m in self.blocks:
            y = m["n1"](x)
            q, k, v = (m[n](y).view(b, s, self.h, self.size).transpose(1, 2).reshape(-1, s, self.size) for n in "qkv")
            a = torch.softmax(torch.bmm(q * self.size**-0.5, k.transpose(1, 2)), 2)
            y = torch.bmm(F.dropout(a, 0.25), v).view(b, self.h, s, self.size).transpose(1, 2).reshape(b, s, -1)
            r = F.dropout(m["o"](y), 0.25) + x
            y = F.relu(m["a"](m["n2"](r)))
            x = m["b"](F.dropout(y, 0.25)) + r
        y = x.mean(2)
        return F.cross_entropy(self.d2(F.dropout(F.relu(self.d1(y)), 0.4)), target)


class Embedding(nn.Module):  # pretrained_word_embeddings: 20,000 x 100 frozen, 3 Conv1D of 128 (width 5), 200 tokens
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(20002, 100)
        self.e.weight.requires_grad_(False)
        self.c = nn.ModuleList([nn.Conv1d(100, 128, 5), nn.Conv1d(128, 128, 5), nn.Conv1d(128, 128, 5)])
        self.a, self.b = nn.Linear(128, 128), nn.Linear(128, 20)

    def forward(self, x, target):
        y = self.e(x).transpose(1, 2)
        y = F.max_pool1d(F.relu(self.c[0](y)), 5)
        y = F.max_pool1d(F.relu(self.c[1](y)), 5)
        y = F.relu(self.c[2](y)).amax(2)
        return F.cross_entropy(self.b(F.dropout(F.relu(self.a(y)), 0.5)), target)


class GNN(
    nn.Module
):  # mpnn-molecular-graphs: 4 steps of message passing, units 64, GRU cell; BBBP: about 24 atoms, 52 + 24 bonds a molecule
    def __init__(self, units=64, bond=7, steps=4):
        super().__init__()
        self.units, self.steps = units, steps
        self.kernel, self.bias = nn.Parameter(torch.zeros(bond, units * units)), nn.Parameter(torch.zeros(units * units))
        self.wx, self.wh = nn.Linear(units, 3 * units), nn.Linear(units, 3 * units)
        self.att = nn.ModuleDict(
            dict(q=nn.Linear(units, 8 * units), k=nn.Linear(units, 8 * units), v=nn.Linear(units, 8 * units), o=nn.Linear(8 * units, units))
        )
        self.n1, self.n2 = nn.LayerNorm(units), nn.LayerNorm(units)
        self.a, self.b = nn.Linear(units, 512), nn.Linear(512, units)
        self.c, self.d = nn.Linear(units, 512), nn.Linear(512, 1)

    def forward(self, atoms, bonds, source, target_index, pack, label):
        u = self.units
        h = F.pad(atoms, (0, u - atoms.shape[1]))
        for _ in range(self.steps):
            m = torch.addmm(self.bias, bonds, self.kernel).view(-1, u, u)
            m = torch.bmm(m, h.index_select(0, source).unsqueeze(2)).squeeze(2)
            s = torch.zeros_like(h).index_add(0, target_index, m)
            x, y = self.wx(s), self.wh(h)
            xr, xz, xn = x.chunk(3, 1)
            hr, hz, hn = y.chunk(3, 1)
            z = torch.sigmoid(xz + hz)
            h = z * h + (1 - z) * torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
        p = h.index_select(0, pack.view(-1)).view(*pack.shape, u)  # molecules x atoms of the largest
        b, n = pack.shape
        q, k, v = (self.att[i](p).view(b, n, 8, u).transpose(1, 2).reshape(-1, n, u) for i in "qkv")
        a = torch.softmax(torch.bmm(q * u**-0.5, k.transpose(1, 2)), 2)
        y = torch.bmm(a, v).view(b, 8, n, u).transpose(1, 2).reshape(b, n, -1)
        y = self.n1(p + self.att["o"](y))
        y = self.n2(y + self.b(F.relu(self.a(y))))
        return F.binary_cross_entropy_with_logits(self.d(F.relu(self.c(y.mean(1)))).squeeze(1), label)


class Speech(nn.Module):  # deepspeech2 of Keras' CTC example: 2 convolutions, 5 bidirectional GRU of 512
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 32, (11, 41), (2, 2), (5, 20), bias=False), nn.Conv2d(32, 32, (11, 21), (1, 2), (5, 10), bias=False)
        self.b1, self.b2 = nn.BatchNorm2d(32), nn.BatchNorm2d(32)
        self.rnn = nn.ModuleList([nn.GRU(32 * 49 if i == 0 else 1024, 512, batch_first=True, bidirectional=True) for i in range(5)])
        self.a, self.b = nn.Linear(1024, 1024), nn.Linear(1024, 32)

    def forward(self, x, target):
        y = F.relu(self.b1(self.c1(x)))
        y = F.relu(self.b2(self.c2(y)))
        b, c, t, f = y.shape
        y = y.permute(0, 2, 1, 3).reshape(b, t, c * f)
        for r in self.rnn:
            y = F.dropout(r(y)[0], 0.5)
        y = self.b(F.dropout(F.relu(self.a(y)), 0.5))
        return F.cross_entropy(y.view(-1, 32), target)


def floats(*shape):
    return torch.zeros(*shape)


def ids(*shape):
    return torch.zeros(*shape, dtype=torch.long)


# Length of the longest of a batch of Multi30k's sentences (13 words on average, standard deviation 4.2), with two marks: a guess.
LENGTH = {16: 24, 32: 26, 64: 28, 128: 30, 256: 32}
# Items that the users of a batch have seen, of 20,108: a guess, from popularities that are log-normal (median 20, mean 497 of 10 M ratings).
ITEMS = {512: 4400, 1024: 6000, 2048: 7700, 4096: 9700, 8192: 11700}


def resnet18(b):
    return ResNet18(), (floats(b, 3, 32, 32), ids(b))


def resnet50(b):
    return ResNet50(), (floats(b, 3, 224, 224), ids(b))


# The longest sentence of Multi30k, which decides the peak of memory over an epoch: a guess.
LONGEST = 46


def transformer_longest(b):
    return transformer(b, LONGEST)


def transformer(b, s=None):
    s = s or LENGTH[b]
    mask = lambda: torch.zeros(b, s, s, dtype=torch.bool)
    return Transformer(), (ids(b, s), ids(b, s), ids(b, s), ids(b, s), mask(), mask(), mask(), floats(b, s, 1), floats(b, s, 1), ids(b * s))


def lm(b):
    return LM(), (ids(35, b), floats(2, b, 200), floats(2, b, 200), ids(35 * b))


def recommendation(b):
    n = ITEMS[b]
    return Recoder(), (ids(b * 73), floats(b * 73), ids(n), floats(b, n))  # 73 ratings a user: 10 M (4 stars and more) of 136,677 users


def a3c(b):
    return A3C(), (*[floats(1, 1, 80, 80) for _ in range(20)], floats(1, 512), floats(1, 512), ids(1, 1), floats(1, 1))


def cyclegan(b):
    return CycleGAN(), tuple(floats(1, 3, 256, 256) for _ in range(4))


def forda(b):
    return FordA(), (floats(b, 500, 1), ids(b))


def embedding(b):
    return Embedding(), (ids(b, 200), ids(b))


def gnn(b):
    atoms, bonds, most = 24 * b, 76 * b, 60  # most: atoms of the largest molecule of a batch, a guess
    return GNN(), (floats(atoms, 29), floats(bonds, 7), ids(bonds), ids(bonds), ids(b, most), floats(b))


def speech(b):
    frames = 1000  # LJSpeech: clips to 10 s, 160 samples of 22,050 Hz a frame; a guess
    return Speech(), (floats(b, 1, frames, 193), ids(b * frames // 2))


MODELS = {
    "resnet18": (resnet18, (16, 32, 64, 128, 256)),
    "resnet50": (resnet50, (16, 32, 64, 128)),
    "transformer": (transformer, (16, 32, 64, 128, 256)),
    "transformer_longest": (transformer_longest, (16, 32, 64, 128, 256)),
    "lm": (lm, (5, 10, 20, 40, 80)),
    "recommendation": (recommendation, (512, 1024, 2048, 4096, 8192)),
    "a3c": (a3c, (1,)),
    "cyclegan": (cyclegan, (1,)),
}
MISO = {
    "miso_transformer": (forda, (16, 32, 64, 128)),
    "miso_embedding": (embedding, (64, 128, 256, 512)),
    "miso_gnn": (gnn, (64, 128, 256, 512)),
    "miso_deepspeech2": (speech, (2, 4, 8, 16)),
}


def main():
    out, only = sys.argv[1], sys.argv[2:]
    jobs = [(n, f, b) for n, (f, batches) in {**MODELS, **MISO}.items() for b in batches]
    for name, make, batch in jobs:
        if only and name not in only:
            continue
        with torch.device("meta"):
            model, inputs = make(batch)
        try:
            text = export_graph(model, inputs, mode="training")
        except Exception as e:
            print(name, batch, type(e).__name__, str(e)[:300])
            if only:
                raise
            continue
        with open(f"{out}/{name}_{batch}.tcg", "w") as f:
            f.write(text)
        print(name, batch, len(text), flush=True)


main()
