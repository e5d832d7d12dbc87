"""`d3s live` and `d3s view`: depth in a browser, live and saved."""

import gc
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from d3s.cli.camera import given_rig, is_twin, name_of, rig_or_paper, source_options
from d3s.cli.depth import parsed_method
from d3s.cli.options import Address, Estimate, Grab, Light
from d3s.cli.output import NOTHING_USABLE, end, say_step, value_of
from d3s.cli.values import Length

if TYPE_CHECKING:
    from d3s.camera.live.pipeline import Counts
    from d3s.camera.live.results import Settings
    from d3s.camera.live.server import Page
    from d3s.camera.recording import Recorder
    from d3s.frames import Source
    from d3s.rig import Rig

_RECORDING = ".mcap"


def live(
    source: str = "twin",
    *,
    rig: str | None = None,
    output: Path = Path("live"),
    record: bool = False,
    foxglove: bool = False,
    side_by_side: bool = False,
    light: Light,
    grab: Grab,
    estimate: Estimate,
    min_confidence: float | None = None,
    max_sigma: Length = None,
    quick: bool = False,
    seconds: float | None = None,
    quiet: bool = False,
    address: Address,
) -> None:
    """Watch the depth of a camera in the browser, with an error bar for each pixel.

    Prints the address of the page, which holds a secret token: who has the address can watch. The
    page answers this machine only, unless --host says otherwise. Ctrl-C ends it. Exit code 1 if no
    depth was computed, such as with a rig that does not fit the camera.

    Options:
        output: Folder for recordings and snapshots.
        record: Record from the start.
        foxglove: Also serve the application Foxglove, at 127.0.0.1, port 8765. It has no token, and
            checks neither Host nor Origin: every program and page of this machine can read.
    """
    from d3s.camera.live import check_server

    check_server()
    from d3s.camera.live.feed import Feed
    from d3s.camera.live.pipeline import Pipeline
    from d3s.frames import open_source

    camera = _rig_of(source, rig)
    settings = _settings(estimate, camera, min_confidence, max_sigma, quick=quick)
    options = source_options(light, grab, side_by_side=side_by_side, keep_raw=True)
    frames = open_source(source, camera, options)
    _check_fit(frames, camera)
    pipeline = Pipeline(
        frames,
        camera,
        settings=settings,
        drop=frames.frame_count is None,  # files wait, cameras do not
        new_recorder=lambda: _new_recorder(output, camera, source),
    )
    with ExitStack() as stack:
        stack.callback(frames.close)
        if record:  # from the first frame on
            pipeline.start_recording()
        stack.enter_context(pipeline)
        title = name_of(frames, source)
        if foxglove:
            from d3s.camera.live.foxglove import WARNING, serving

            link = stack.enter_context(serving(pipeline, title=title))
            say_step(f"Open {link} in Foxglove. Warning: {WARNING}")
        feed = stack.enter_context(closing(Feed(pipeline, title=title, folder=output)))
        serve([feed.page()], address, seconds=seconds, quiet=quiet)
    if not quiet:
        typer.echo(_summary(pipeline.counts))
    if not pipeline.counts.computed:
        _end_without_depth(pipeline.problem or pipeline.state)


def _check_fit(source: "Source", rig: "Rig") -> None:
    """End with the reason if the first frame of a camera does not fit the rig."""
    from d3s.camera.capture.live_camera import GRABBING, LiveCamera, misfit

    if not isinstance(source, LiveCamera) or source.state != GRABBING:
        return
    try:
        first = source.first()
        reason = "" if first is None else misfit(first, rig)
    except BaseException:
        source.close()
        raise
    if reason:
        source.close()
        _end_without_depth(reason)


def _end_without_depth(reason: str) -> None:
    say_step(f"d3s: no depth was computed: {reason}")
    end(NOTHING_USABLE)


def view(
    path: Path,
    *,
    rig: str | None = None,
    output: Path = Path("live"),
    estimate: Estimate,
    min_confidence: float | None = None,
    max_sigma: Length = None,
    quick: bool = False,
    seconds: float | None = None,
    quiet: bool = False,
    address: Address,
) -> None:
    """Look at saved depth in the browser: a depth map, a recording, or a folder.

    Several frames have a time line. Frames of a camera are estimated as they are shown. The page
    is closed to others, as that of d3s live.

    Options:
        path (FILE|FOLDER): Depth map (.npz) of d3s depth, a recording (.mcap), an image that holds
            both views, or a folder of depth maps or images.
        output: Folder for snapshots.
    """
    from d3s.camera.live import check_server

    check_server()
    from d3s.camera.live.feed import Feed
    from d3s.camera.live.saved import SavedShow, open_saved

    camera = given_rig(rig)
    settings = _settings(estimate, camera, min_confidence, max_sigma, quick=quick)
    saved = open_saved(path, camera)
    with ExitStack() as stack:
        show = stack.enter_context(SavedShow(saved, settings=settings))
        feed = stack.enter_context(closing(Feed(show, title=path.name, folder=output)))
        serve([feed.page()], address, seconds=seconds, quiet=quiet)


def serve(
    pages: "list[Page]", address: Address, *, seconds: float | None = None, quiet: bool = False
) -> None:
    """Serve pages until Ctrl-C, or for some seconds."""
    from d3s.camera.live.server import Server, warning_of

    def ready(link: str) -> None:
        gc.freeze()  # what is loaded stays: looking through it would hold up the grab thread
        warning = warning_of(address.host)
        if warning:
            say_step(f"Warning: {warning}")
        if not quiet:
            typer.echo(f"Open {link}\nCtrl-C ends it.")
        if address.browser:
            typer.launch(link)

    try:
        Server(pages, host=address.host, port=address.port).run(ready, seconds=seconds)
    finally:
        gc.unfreeze()


def _settings(
    given: Estimate,
    camera: "Rig | None",
    min_confidence: float | None,
    max_sigma_m: float | None,
    *,
    quick: bool,
) -> "Settings":
    from d3s.camera.live.results import FAST, Filter, Settings

    name, checked = parsed_method(given, camera)
    if quick:
        with value_of("--quick"):
            checked = checked.replace(**FAST)
    with value_of("--min-confidence or --max-sigma"):
        shown = Filter(min_confidence=min_confidence, max_sigma_m=max_sigma_m)
    return Settings(method=name, options=checked, shown=shown)


def _rig_of(source: str, word: str | None) -> "Rig":
    """Camera of a source: as given, of the recording, or the paper's for the twin."""
    if word is not None or is_twin(source):
        return rig_or_paper(word)
    if Path(source).suffix.lower() == _RECORDING:
        from d3s.camera.recording import Recording
        from d3s.camera.recording.reader import rig_of

        with Recording(source) as recording:
            return rig_of(recording)
    raise typer.BadParameter(
        f"which camera is {source}? Give its rig file, or paper for the paper's prototype.",
        param_hint="--rig",
    )


def _new_recorder(folder: Path, rig: "Rig", source: str) -> "Recorder":
    """Recording in a new file, named by the time."""
    from d3s.atomic import make_folder
    from d3s.camera.recording.writer import Recorder

    make_folder(folder)
    path = folder / f"recording_{time.strftime('%Y%m%d_%H%M%S')}{_RECORDING}"
    return Recorder(path, rig=rig, notes={"source": source})


def _summary(counts: "Counts") -> str:
    """Counters that are not 0, in one line."""
    words = [f"{value} {name.replace('_', ' ')}" for name, value in vars(counts).items() if value]
    return f"Frames: {', '.join(words) or 'none'}."
