"""Input that is close to what trained models see: lines of text as pictures, and sound with the spectrum of a voice."""
import numpy as np

# Five columns and seven rows a letter, a number a row.
FONT = {"0": (14, 17, 19, 21, 25, 17, 14), "2": (14, 17, 1, 2, 4, 8, 31), "4": (2, 6, 10, 18, 31, 2, 2), "7": (31, 1, 2, 4, 8, 8, 8),
        "E": (31, 16, 16, 30, 16, 16, 31), "H": (17, 17, 17, 31, 17, 17, 17), "L": (16, 16, 16, 16, 16, 16, 31), "O": (14, 17, 17, 17, 17, 17, 14),
        "R": (30, 17, 17, 30, 20, 18, 17), "T": (31, 4, 4, 4, 4, 4, 4), " ": (0,) * 7}


def letters(text, scale):
    """Black letters on white, [height, width] in [0, 255]; the edges are softened as a camera would."""
    rows = [[(FONT[letter][row] >> (4 - column)) & 1 for letter in text for column in range(-1, 5)] for row in range(7)]
    ink = np.kron(np.array(rows, np.float32), np.ones((scale, scale), np.float32))
    ink = np.pad(ink, scale)
    for axis in (0, 1):
        ink = (np.roll(ink, 1, axis) + 2 * ink + np.roll(ink, -1, axis)) / 4
    return 255 - 230 * ink


def text_line(text, height, width):
    """One line of text in a picture as recognizers read it: [1, 3, height, width], values from -1 to 1."""
    page = np.full((height, width), 255, np.float32)
    line = letters(text, height // 10)
    top = (height - line.shape[0]) // 2
    page[top:top + line.shape[0], 4:4 + line.shape[1]] = line[:, :width - 4]
    return np.ascontiguousarray(np.broadcast_to(page / 127.5 - 1, (1, 3, height, width)), np.float32)


def text_page(lines, height, width):
    """A page with lines of text as detectors read it: [1, 3, height, width], of mean 0 and deviation 1 of photographs."""
    page = np.full((height, width), 235, np.float32)
    for number, text in enumerate(lines):
        line = letters(text, 4)
        top, left = 20 + 70 * number, 16 + 8 * number
        page[top:top + line.shape[0], left:left + line.shape[1]] = line
    mean, deviation = np.array([[0.485], [0.456], [0.406]], np.float32), np.array([[0.229], [0.224], [0.225]], np.float32)
    return ((page.reshape(1, -1) / 255 - mean) / deviation).reshape(1, 3, height, width).astype(np.float32)


def voice(seconds, rate, seed=0):
    """Sound like a vowel: the harmonics of a tone that rises and falls, under three formants, with pauses and some noise."""
    time = np.arange(int(seconds * rate)) / rate
    pitch = 120 + 25 * np.sin(2 * np.pi * 2.5 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    sound = np.zeros_like(time)
    for harmonic in range(1, 30):
        frequency = harmonic * 120
        gain = sum(np.exp(-((frequency - formant) / width) ** 2) for formant, width in ((700, 130), (1220, 170), (2600, 250)))
        sound += (gain + 0.02) * np.sin(harmonic * phase)
    sound *= np.clip(np.sin(2 * np.pi * 1.7 * time) * 3, 0, 1)
    sound += 0.01 * np.random.default_rng(seed).standard_normal(time.shape)
    return (0.3 * sound / np.abs(sound).max()).astype(np.float32)
