"""Networks in plain PyTorch to try Mizzen on, from keyword spotting to a vision transformer.

`NETWORKS["mobilenet_v2"].build()` gives a module for inference, `.example_inputs()` the arguments
of a call and `.calibration()` several such. All but `digits` have random weights.
"""

from __future__ import annotations

from zoo.convnext import ENTRY as CONVNEXT
from zoo.decoder import ENTRY as DECODER
from zoo.digits import ENTRY as DIGITS
from zoo.ds_cnn import ENTRY as DS_CNN
from zoo.entry import Entry
from zoo.inverted import EFFICIENTNET_LITE0_ENTRY, MOBILENET_V2_ENTRY
from zoo.mobilenet_v3 import ENTRY as MOBILENET_V3_SMALL
from zoo.recurrent import GRU_ENTRY, LSTM_ENTRY, TCN_ENTRY
from zoo.resnet18 import ENTRY as RESNET18
from zoo.transformers import ENCODER_ENTRY, VIT_TINY_ENTRY
from zoo.unet import ENTRY as UNET
from zoo.yolo import ENTRY as YOLO

NETWORKS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        DIGITS,
        DS_CNN,
        MOBILENET_V2_ENTRY,
        MOBILENET_V3_SMALL,
        RESNET18,
        EFFICIENTNET_LITE0_ENTRY,
        UNET,
        YOLO,
        CONVNEXT,
        ENCODER_ENTRY,
        VIT_TINY_ENTRY,
        DECODER,
        LSTM_ENTRY,
        GRU_ENTRY,
        TCN_ENTRY,
    )
}

__all__ = ["NETWORKS", "Entry"]
