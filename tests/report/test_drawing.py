"""Colours of the pictures of pages in light and dark mode."""

import numpy as np
import pytest
from matplotlib import colormaps

from gpuens.plotting.drawing import BLACK, WHITE, luminance
from gpuens.report.drawing import EXCHANGED_BLACK, EXCHANGED_WHITE, MIRROR, PALE_MAPS, mirrored_ink

# texts in light and in dark mode
TEXTS = {
    BLACK: (BLACK, BLACK),
    WHITE: (WHITE, WHITE),
    EXCHANGED_BLACK: (BLACK, WHITE),
    EXCHANGED_WHITE: (WHITE, BLACK),
}


def contrast(text, ground):
    low, high = sorted([luminance(text) + 0.05, luminance(ground) + 0.05])
    return high / low


@pytest.mark.parametrize("name", PALE_MAPS)
def test_numbers_on_mirrored_colours_are_legible_in_both_modes(name):
    for ground in colormaps[name](np.linspace(0, 1, 101))[:, :3]:
        light, dark = TEXTS[mirrored_ink(ground)]
        mirrored = np.clip(MIRROR @ [*ground, 1.0], 0, 1)
        assert min(contrast(light, ground), contrast(dark, mirrored)) >= 4.5
