"""Small models that tests derive and record: each factory gives a module, inputs and a loss."""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812 - the usual name
from torch.utils.checkpoint import checkpoint

CLASSES = 10


def mlp(batch):
    module = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    return module, (torch.randn(batch, 32),), classification


def dropout(batch):
    module = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.5), nn.Linear(64, CLASSES))
    return module, (torch.randn(batch, 32),), classification


def classification(output):
    return F.cross_entropy(output, torch.zeros(len(output), dtype=torch.long))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, stride=2)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = torch.relu_(self.norm(self.conv1(x)))
        x = self.pool(x + self.conv2(x))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def cnn(batch):
    return Cnn(), (torch.randn(batch, 3, 32, 32),), classification


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.dropout = heads, dropout

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, -1).transpose(1, 2)
            for t in self.qkv(self.norm1(x)).split(width, -1)
        )
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    """A GPT with tied embeddings."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.embed = nn.Embedding(100, 32)
        self.blocks = nn.ModuleList([Block(32, 4, dropout) for _ in range(2)])
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 100, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), tokens.flatten())


def language(batch):
    return LanguageModel(), (torch.randint(0, 100, (batch, 16)),)


def language_with_dropout(batch):
    return LanguageModel(dropout=0.1), (torch.randint(0, 100, (batch, 16)),)


class Greedy(nn.Module):
    """Branches on a value."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x) if x.sum() > 0 else x


def greedy(batch):
    return Greedy(), (torch.randn(batch, 4),)


def frozen():
    module = nn.Linear(4, 4)
    module.requires_grad_(False)
    return module, (torch.randn(2, 4),)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def recurrent(batch):
    return Recurrent(), (torch.randn(batch, 5, 8),), classification


class Positions(nn.Module):
    """Reads a part of a parameter, and another one broadcast."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.zeros(1, 32, 8))
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        nn.init.trunc_normal_(self.positions)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        x = torch.cat([self.token.expand(len(x), -1, -1), x + self.positions[:, : x.shape[1]]], 1)
        return self.head(x)[:, 0]


def positions(batch):
    return Positions(), (torch.randn(batch, 16, 8),), classification


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head = Block(32, 4, 0.0), nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.head(checkpoint(self.block, x, use_reentrant=False)).mean()


def checkpointed(batch):
    return Checkpointed(), (torch.randn(batch, 16, 32),)


def wrong(batch):
    return {"batch": batch}


def tiny_gpt2(batch):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=100, n_positions=16, n_embd=32, n_layer=2, n_head=4, use_cache=False
    )
    model = GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"
    tokens = torch.randint(0, 100, (batch, 16))
    return model, {"input_ids": tokens, "labels": tokens}


def images():
    """A classifier of ImageNet-sized images, for which inputs and loss are made."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 7, stride=8), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1000)
    )
