"""Published measurements of inferences, and the systems that they were made in.

Each row says what was not known of its set-up. `known` rows are those where network, NPU, clock,
memory mode and compiler are; the others are told all the same.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Speeds:
    """Memories behind the NPU's ports where a vendor publishes them; `vela.ini`'s keys.

    sram, flash  clock scale, longest burst in bytes, latency in cycles
    """

    sram: tuple[float, int, int]
    flash: tuple[float, int, int]
    source: str


ALIF_HE = Speeds(
    (1.0, 8, 13), (0.303, 16, 24),
    "alifsemi/alif_ml-embedded-evaluation-kit at b1b93fc0, ensemble_vela.ini, RTSS_HE_SRAM_MRAM",
)  # fmt: skip
WE2 = Speeds(
    (1.0, 32, 16), (0.015625, 32, 64),
    "HimaxWiseEyePlus/ML_FVP_EVALUATION, himax_vela.ini, My_Sys_Cfg",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A published measurement.

    network    a file of MIZZEN_MODELS, one of MIZZEN_PREDICTIONS, or a name of `NETWORKS`
    ms         that an inference was measured to take
    source     who published it
    not_known  of the set-up
    file       where the network's file is from; empty for one of the models' folder or by shape
    mj         that an inference was measured to take, the board's idle power included
    board      whose energies these are
    fitted     whether the board's energies were fitted to this row
    """

    network: str
    accelerator: str
    memory_mode: str
    clock_mhz: float
    ms: float
    source: str
    not_known: str
    known: bool = False
    speeds: Speeds | None = None
    system: str = "Ethos_U55_High_End_Embedded"
    optimise: str = "Performance"
    file: str = ""
    mj: float | None = None
    board: str = ""
    fitted: bool = False


NUVOTON = "OpenNuvoton/ML_M55M1_SampleCode, M55M1BSP-3.01.002/SampleCode/NuEdgeWise"
RUHMI = "renesas/ruhmi-model-zoo"
FLASH = "speed of the flash (vela.ini's was taken); what the CPU does around the NPU"
HYPER = "speed of the HyperRAM that holds the network (vela.ini's flash was taken)"
MRAM = "speeds of MRAM and SRAM (vela.ini's were taken); quantised anew by RUHMI's compiler"

U55_64, U55_128, U55_256 = "ethos-u55-64", "ethos-u55-128", "ethos-u55-256"
SRAM_ONLY, SHARED = "Sram_Only", "Shared_Sram"


def nuvoton(
    network: str, place: str, rate: float, *, known: bool = False, not_known: str = HYPER
) -> Row:
    """Return a row of Nuvoton's samples, which publish inferences in a second."""
    sample = place.partition("/")[0]
    return Row(
        network, U55_256, SHARED, 220, 1e3 / rate, f"{NUVOTON}/{sample}/README.md",
        not_known, known, file=f"{NUVOTON}/{place}",
    )  # fmt: skip


ROWS: tuple[Row, ...] = (
    Row("kws_micronet_m.tflite", U55_128, SHARED, 160, 2.727,
        "alifsemi/alif_ml-embedded-evaluation-kit at b1b93fc0, ML_Embedded_Evaluation_Kit.md",
        "version of Vela; time of the runtime around the NPU", True, ALIF_HE),
    Row("yolo_v1_96", U55_64, SRAM_ONLY, 400, 2.0,
        "j0shmillar/uNPU-Bench at bf22c50a, src/npu/himax/himax_yolo_size.csv",
        "weights (random here); whether the network lay in SRAM; ends within 0.2 ms; time of the "
        "runtime around the NPU", True, WE2, optimise="Size", mj=0.2073, board="himax_we2",
        fitted=True),
    nuvoton("rnnoise_INT8_vela_H256.tflite.cpp",
            "AudioDenoise/Model/rnnoise_INT8_vela_H256.tflite.cpp", 1946.9,
            known=True, not_known=FLASH),
    nuvoton("yolo-fastest_192_face_v4_vela.tflite",
            "FaceDetection/Model/yolo-fastest_192_face_v4_vela.tflite", 131.1,
            known=True, not_known=FLASH),
    nuvoton("face_landmark_cls_int8_vela_H256.tflite.cpp",
            "FaceLandmark_PoseCheck/Model/face_landmark_cls_int8_vela_H256.tflite.cpp", 12573,
            not_known="which of two networks was timed; " + FLASH),
    nuvoton("YOLOv8n-od.tflite", "ObjectDetection_YOLOv8n/Model/YOLOv8n-od.tflite", 34.0),
    nuvoton("YOLOv8n-pose.tflite", "PoseLandmark_YOLOv8n/Model/YOLOv8n-pose.tflite", 32.7),
    nuvoton("hand_landmark.tflite", "HandLandmark/Model/hand_landmark.tflite", 39.5),
    nuvoton("face_mobilenet.tflite", "FaceRecognition/Model/face_mobilenet.tflite", 43.4),
    nuvoton("face_landmark_int8_vela_H256.tflite.cpp",
            "FaceLandmark/Model/face_landmark_int8_vela_H256.tflite.cpp", 38.6,
            not_known="where the network lay; PAD on the CPU; " + FLASH),
    nuvoton("anti-spoof-mn3_full_integer_quant_per_tensor_vela.tflite",
            "SafetyRecognition/Model/anti-spoof-mn3_full_integer_quant_per_tensor_vela.tflite",
            55.6),
    Row("mobilenet_v2_035", U55_256, SHARED, 220, 1e3 / 75.8,
        f"{NUVOTON}/ImageClassification/README.md", f"weights (random here); {FLASH}"),
    Row("kws_ref_model.tflite", U55_256, SHARED, 500, 0.108,
        f"{RUHMI}, audio/audio_classification/key_word_spotting/README.md", MRAM),
    Row("kws_ref_model.tflite", U55_256, SRAM_ONLY, 500, 0.141,
        f"{RUHMI}, audio/audio_classification/key_word_spotting/README.md", MRAM),
    Row("vww_96_int8.tflite", U55_256, SHARED, 500, 0.364,
        f"{RUHMI}, vision/image_classification/visualwakeword/README.md", MRAM),
    Row("vww_96_int8.tflite", U55_256, SRAM_ONLY, 500, 0.406,
        f"{RUHMI}, vision/image_classification/visualwakeword/README.md", MRAM),
    Row("ad01_int8.tflite", U55_256, SHARED, 500, 0.132,
        f"{RUHMI}, real_time_analytics/anomaly_detection/auto_encoder/README.md", MRAM),
)  # fmt: skip
