"""Colours of figures and cards: a blue to yellow ramp with a step at the threshold, one colour per capability.

Lightness rises all the way, so that the ramp can be read in grey and with any colour vision.
"""

_BELOW = ((0x0B, 0x1F, 0x4B), (0x34, 0x4E, 0x86), (0x7F, 0x96, 0xB8))
_ABOVE = ((0xE9, 0xD4, 0x6A), (0xFD, 0xEE, 0x9C))
_INK, _PAPER = "#16202e", "#ffffff"
CAPABILITY = {"retrieval": "#2457a7", "reasoning": "#b3700a", "documents": "#64707f"}
"""Line colour by capability."""
INK = _INK
MUTED = "#64707f"


def heat_color(mean: float, threshold: float | None) -> str:
    """Fill (#rrggbb) of a cell; the ramp jumps at `threshold`."""
    cut = 0.5 if threshold is None else threshold
    if mean < cut:
        return _mix(_BELOW, mean / cut)
    return _mix(_ABOVE, (mean - cut) / (1 - cut) if cut < 1 else 1.0)


def ink_on(color: str) -> str:
    """Black or white, whichever is clearer on `color`: at least 4.5 to 1 on any, which no softer pair of inks gives."""
    red, green, blue = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    # WCAG contrast with white against contrast with black: take the larger.
    return _PAPER if (1.05 / (luminance + 0.05)) >= ((luminance + 0.05) / 0.05) else "#000000"


def _mix(anchors: tuple[tuple[int, int, int], ...], share: float) -> str:
    place = min(max(share, 0.0), 1.0) * (len(anchors) - 1)
    left = min(int(place), len(anchors) - 2)
    part = place - left
    return "#" + "".join(
        f"{round(a + (b - a) * part):02x}" for a, b in zip(anchors[left], anchors[left + 1], strict=True)
    )
