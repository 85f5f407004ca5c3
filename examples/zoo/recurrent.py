"""Classifiers of sequences: an LSTM, a GRU, and a temporal convolutional network.

Ref: Bai et al., "An Empirical Evaluation of Generic Convolutional and Recurrent Networks for
Sequence Modeling", 2018, for the last.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from zoo.entry import Entry, settle
from zoo.inputs import sequences

FEATURES = 40
STEPS = 16
FRAMES = 100
CLASSES = 12


class LstmClassifier(nn.Module):
    """[N, 16, 40] -> logits [N, 12]."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.lstm = nn.LSTM(FEATURES, width, batch_first=True)
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.lstm(x)
        return self.classifier(y[:, -1])


class GruClassifier(nn.Module):
    """[N, 16, 40] -> logits [N, 12]."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.gru = nn.GRU(FEATURES, width, batch_first=True)
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.gru(x)
        return self.classifier(y[:, -1])


class CausalBlock(nn.Module):
    """Two dilated convolutions that see no later step, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.past = 2 * dilation
        self.conv1 = nn.Conv1d(inputs, outputs, 3, dilation=dilation)
        self.norm1 = nn.BatchNorm1d(outputs)
        self.conv2 = nn.Conv1d(outputs, outputs, 3, dilation=dilation)
        self.norm2 = nn.BatchNorm1d(outputs)
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv1d(inputs, outputs, 1)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.norm1(self.conv1(functional.pad(x, (self.past, 0)))))
        y = self.relu(self.norm2(self.conv2(functional.pad(y, (self.past, 0)))))
        return self.relu(y + self.shortcut(x))


class Tcn(nn.Module):
    """[N, 40, 100] -> logits [N, 12]."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.blocks = nn.Sequential(
            CausalBlock(FEATURES, width, 1),
            *(CausalBlock(width, width, dilation) for dilation in (2, 4, 8)),
        )
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.blocks(x)[:, :, -1])


LSTM_ENTRY = Entry(
    "lstm", "sequence of 16 steps", LstmClassifier, sequences(STEPS, FEATURES, along=1), settle
)
GRU_ENTRY = Entry(
    "gru", "sequence of 16 steps", GruClassifier, sequences(STEPS, FEATURES, along=1), settle
)
TCN_ENTRY = Entry(
    "tcn", "dilated causal convolutions", Tcn, sequences(FEATURES, FRAMES, along=2), settle
)
