"""HTML of a depth map in a notebook: a preview, numbers, warnings, and the reasons of holes."""

import base64
import html
import io

import numpy as np
from numpy.typing import NDArray

from d3s.estimate import DepthMap
from d3s.estimate.plot.flag_colours import FLAG_COLOURS
from d3s.estimate.plot.panels import NO_VALUE_COLOUR
from d3s.estimate.plot.preview import plain_preview, scale_m
from d3s.estimate.summary import flag_name, headline, percent, reasons

_WIDEST_PX, _TALLEST_PX = 480, 400
_MOST_REASONS = 6
_GRADIENT_STEPS = 9


def depth_map_html(est: DepthMap) -> str:
    """HTML that a notebook shows for a depth map; as wide as its cell, and at home in the dark."""
    rows, cols = est.depth_m.shape
    facts = _text(f"{rows} x {cols} px, {est.method}, {est.rig.name}")
    first = headline(est)
    words = [
        f"<div><b>DepthMap</b> {facts}</div>",
        f"<div>{_text(first[0].upper() + first[1:])}.</div>",
        *(_warning(one) for one in est.warnings),
        _reasons_html(est),
    ]
    return (
        '<div style="display:flex;flex-wrap:wrap;gap:12px;margin-bottom:10px;'
        'align-items:flex-start;font-family:sans-serif;font-size:13px;line-height:1.4">'
        f'<div style="flex:0 1 auto;min-width:0;max-width:100%">{_picture(est)}</div>'
        '<div style="flex:1 1 260px;min-width:0;max-width:44em;overflow-wrap:anywhere">'
        f"{''.join(words)}</div></div>"
    )


def _picture(est: DepthMap) -> str:
    """Preview in colours with its scale; grey where there is no depth."""
    small = _shrunk(est.depth_m)
    source = base64.b64encode(_png(plain_preview(small))).decode("ascii")
    wide = min(_WIDEST_PX, round(_TALLEST_PX * small.shape[1] / small.shape[0]))
    picture = (
        f'<img alt="depth" style="display:block;width:{wide}px;max-width:100%;'
        f'image-rendering:auto" src="data:image/png;base64,{source}">'
    )
    if not np.isfinite(small).any():
        return picture
    low, high = scale_m(small[np.isfinite(small)])
    steps_m = np.geomspace(low, high, _GRADIENT_STEPS)
    stops = ",".join("#" + bytes(colour).hex() for colour in plain_preview(steps_m[np.newaxis])[0])
    ticks = "".join(f"<span>{value:.3g}</span>" for value in (low, np.sqrt(low * high), high))
    return (
        f'{picture}<div style="width:{wide}px;max-width:100%;font-size:11px">'
        f'<div style="height:8px;margin-top:3px;background:linear-gradient(to right,{stops})">'
        f'</div><div style="display:flex;justify-content:space-between">{ticks}</div>'
        '<div style="opacity:.75">depth in metres; '
        f'<span style="background:{NO_VALUE_COLOUR};color:#000;padding:0 3px">grey</span> '
        "no depth</div></div>"
    )


def _reasons_html(est: DepthMap) -> str:
    """Reasons of holes: a bar of its share for each, with the reason in words."""
    found = reasons(est)
    if not found:
        return ""
    lines = []
    for one in found[:_MOST_REASONS]:
        wide = max(round(100 * one.share), 1)
        bar = (
            '<div style="height:6px;background:rgba(128,128,128,.2);border-radius:2px">'
            f'<div style="height:6px;width:{wide}%;background:{FLAG_COLOURS[one.flag]};'
            'border-radius:2px"></div></div>'
        )
        lines.append(
            f'<div style="margin-top:4px"><span>{percent(one.share)} '
            f'<b>{flag_name(one.flag)}</b></span> <span style="opacity:.75">{_text(one.words)}'
            f"</span>{bar}</div>"
        )
    holes = percent(1 - est.density)
    return (
        f'<div style="margin-top:8px">Without a depth: {holes}, by reason (a pixel may have '
        f"several):</div>{''.join(lines)}"
    )


def _warning(words: str) -> str:
    return (
        '<div style="margin-top:6px;padding:4px 8px;border-left:4px solid #d9822b;'
        f'background:rgba(217,130,43,.12)"><b>Warning:</b> {_text(words)}</div>'
    )


def _text(words: str) -> str:
    return html.escape(words, quote=True)


def _shrunk(depth_m: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every nth pixel, so that the picture stays small; no depths are mixed."""
    rows, cols = depth_m.shape
    step = max(-(-cols // _WIDEST_PX), -(-rows // _TALLEST_PX), 1)
    return depth_m[step // 2 :: step, step // 2 :: step] if step > 1 else depth_m


def _png(levels: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(levels).save(buffer, format="PNG")
    return buffer.getvalue()
