"""Writes what the package rt-model-inference infers from random releases: inference.py > inference.json

The package is LiME's (MPI-SWS, Python 3.12 or newer): pip install rt-model-inference==1.0.1. A test compares with the file.
"""

import json
import random

import rt_model_inference as lime

SEQUENCES = 60
MOST = 8


def releases(chance):
    """Windows of releases, in order, and the longest window."""
    period = chance.choice([100, 250, 1_000, 1_337, 40_000])
    jitter = chance.choice([0, period // 50, period // 4, 2 * period])
    width = chance.choice([0, 0, period // 100, period // 10])
    offset = chance.randrange(10 * period)
    windows, last = [], (0, 0)
    for number in range(chance.randrange(MOST, 60)):
        first = offset + number * period + chance.randint(0, jitter)
        first = max(first, last[0])
        last = (first, max(first + chance.randint(0, width), last[1]))
        windows.append(last)
    return windows


def main():
    found = []
    for seed in range(SEQUENCES):
        windows = releases(random.Random(seed))
        instants = [first for first, _ in windows]
        found.append(
            {
                "windows": windows,
                "separation": lime.infer_sporadic_model(instants),
                "periodic": lime.infer_periodic_model(instants),
                "certain": lime.infer_certain_fit_periodic_model(windows),
                "possible": lime.infer_possible_fit_periodic_model(windows),
                # Their intervals include both ends or neither; from two releases on.
                "least": [length - 1 for length in lime.infer_delta_min(instants, MOST)[2:]],
                "least_of_windows": [max(length - 1, 0) for length in lime.infer_delta_min_hi(windows, MOST)[2:]],
                "least_most_of_windows": [length - 1 for length in lime.infer_delta_min_lo(windows, MOST)[2:]],
                "largest": [length + 1 for length in lime.infer_delta_max(instants, MOST - 2)],
            }
        )
    lines = ",\n".join(json.dumps(it, separators=(",", ":")) for it in found)
    print(f"[\n{lines}\n]")


main()
