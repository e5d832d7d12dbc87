"""`d3s live` and `d3s view`: depth in a browser, live and saved."""

import gc
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from d3s.cli.camera import (
    SOURCES,
    CameraOptions,
    SideBySide,
    SourceRig,
    name_of,
    rig_of_word,
)
from d3s.cli.depth import parsed_method
from d3s.cli.options import (
    Bayer,
    FileEncoding,
    depth_range_m,
    is_linear,
    length_m,
    order_of,
    with_groups,
)
from d3s.cli.output import NOTHING_USABLE, Quiet, value_of

if TYPE_CHECKING:
    from d3s.camera.live.feed import Feed
    from d3s.camera.live.pipeline import Counts
    from d3s.camera.live.results import Settings
    from d3s.camera.live.server import Page
    from d3s.camera.recording import Recorder
    from d3s.frames import Source
    from d3s.rig import Rig

_RECORDING = ".mcap"
_TWIN = "twin"

Method = Annotated[
    str,
    typer.Option("--method", "-m", help="joint, consensus, sgbm, or another of d3s compare."),
]
OneOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Option of the method, such as min_confidence=0.6. Repeatable.",
        show_default=False,
    ),
]
Fast = Annotated[
    bool, typer.Option("--fast", help="More frames a second, with less detail; joint only.")
]
DepthRange = Annotated[
    Any,
    typer.Option(
        parser=depth_range_m,
        metavar="NEAREST:FARTHEST",
        help="Depths to look for, such as 0.25:2.5.",
        show_default=False,
    ),
]
MinConfidence = Annotated[
    float | None, typer.Option(help="Show depths that are as confident, 0 to 1.")
]
MaxSigma = Annotated[
    float | None,
    typer.Option(
        parser=length_m, metavar="LENGTH", help="Show depths that are as certain, such as 5mm."
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(min=0, help="End after so many seconds; Ctrl-C if left.", show_default=False),
]


class EstimateOptions(NamedTuple):
    """Options of the estimate, and of what is shown of it."""

    method: Method = "joint"
    option: OneOption = None
    fast: Fast = False
    depth_range: DepthRange = None
    min_confidence: MinConfidence = None
    max_sigma: MaxSigma = None


class ShowOptions(NamedTuple):
    """Options of the pages of a show, beside their address."""

    seconds: Seconds = None
    quiet: Quiet = False


Host = Annotated[
    str,
    typer.Option(
        help="Address to listen at. Any other than this lets other machines watch and control the "
        "camera, if they have the printed address, over a connection that is not encrypted."
    ),
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any that is free.")
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
]


class Address(NamedTuple):
    """Options on where pages are served."""

    host: Host = "127.0.0.1"
    port: Port = 0
    browser: Browser = True


@with_groups
def live(
    source: Annotated[str, typer.Argument(help=SOURCES, metavar="[SOURCE]")] = _TWIN,
    rig: SourceRig = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for recordings and snapshots.")
    ] = Path("live"),
    record: Annotated[bool, typer.Option("--record", help="Record from the start.")] = False,
    foxglove: Annotated[
        bool,
        typer.Option(
            "--foxglove",
            help="Also serve the application Foxglove, at 127.0.0.1, port 8765. It has no token, "
            "and checks neither Host nor Origin: every program and page of this machine can read.",
        ),
    ] = False,
    side_by_side: SideBySide = False,
    bayer: Bayer = None,
    encoding: FileEncoding = None,
    grabbing: CameraOptions = CameraOptions(),  # noqa: B008 - frozen
    estimating: EstimateOptions = EstimateOptions(),  # noqa: B008 - frozen
    showing: ShowOptions = ShowOptions(),  # noqa: B008 - frozen
    address: Address = Address(),  # noqa: B008 - frozen
) -> None:
    """Watch the depth of a camera in the browser, with an error bar for each pixel.

    Prints the address of the page, which holds a secret token: who has the address can watch. The
    page answers this machine only, unless --host says otherwise. Ctrl-C ends it. Exit code 1 if no
    depth was computed, such as with a rig that does not fit the camera.
    """
    from d3s.camera.live import check_server

    check_server()
    from d3s.camera.live.feed import Feed
    from d3s.camera.live.pipeline import Pipeline
    from d3s.frames import SourceOptions, open_source

    camera = _rig_of(source, rig)
    settings = _settings(estimating)
    options = SourceOptions(
        side_by_side=side_by_side,
        linear=is_linear(encoding),
        bayer=order_of(bayer),
        rate_hz=grabbing.rate,
        exposure_s=grabbing.exposure,
        gain=grabbing.gain,
        keep_raw=True,  # for recordings
    )
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
            typer.echo(f"Open {link} in Foxglove. Warning: {WARNING}", err=True)
        _serve(stack, Feed(pipeline, title=title, folder=output), showing, address)
    if not showing.quiet:
        typer.echo(_summary(pipeline.counts))
    if not pipeline.counts.computed:
        raise _nothing(pipeline.problem or pipeline.state)


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
        raise _nothing(reason)


def _nothing(reason: str) -> typer.Exit:
    """End of a command that computed nothing."""
    typer.echo(f"d3s: no depth was computed: {reason}", err=True)
    return typer.Exit(NOTHING_USABLE)


@with_groups
def view(
    path: Annotated[
        Path,
        typer.Argument(
            help="Depth map (.npz) of d3s depth, a recording (.mcap), an image that holds both "
            "views, or a folder of depth maps or images.",
            metavar="FILE|FOLDER",
            show_default=False,
        ),
    ],
    rig: SourceRig = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for snapshots.")] = Path(
        "live"
    ),
    estimating: EstimateOptions = EstimateOptions(),  # noqa: B008 - frozen
    showing: ShowOptions = ShowOptions(),  # noqa: B008 - frozen
    address: Address = Address(),  # noqa: B008 - frozen
) -> None:
    """Look at saved depth in the browser: a depth map, a recording, or a folder.

    Several frames have a time line. Frames of a camera are estimated as they are shown. The page
    is closed to others, as that of d3s live.
    """
    from d3s.camera.live import check_server

    check_server()
    from d3s.camera.live.feed import Feed
    from d3s.camera.live.saved import SavedShow, open_saved

    settings = _settings(estimating)
    saved = open_saved(path, rig_of_word(rig))
    with ExitStack() as stack:
        show = stack.enter_context(SavedShow(saved, settings=settings))
        _serve(stack, Feed(show, title=path.name, folder=output), showing, address)


def _serve(stack: ExitStack, feed: "Feed", showing: ShowOptions, address: Address) -> None:
    """Serve the page of a feed until it ends."""
    stack.callback(feed.close)
    serve([feed.page()], address, seconds=showing.seconds, quiet=showing.quiet)


def serve(
    pages: "list[Page]", address: Address, *, seconds: float | None = None, quiet: bool = False
) -> None:
    """Serve pages until Ctrl-C, or for some seconds."""
    from d3s.camera.live.server import Server, warning_of

    def ready(link: str) -> None:
        gc.freeze()  # what is loaded stays: looking through it would hold up the grab thread
        warning = warning_of(address.host)
        if warning:
            typer.echo(f"Warning: {warning}", err=True)
        if not quiet:
            typer.echo(f"Open {link}\nCtrl-C ends it.")
        if address.browser:
            typer.launch(link)

    try:
        Server(pages, host=address.host, port=address.port).run(ready, seconds=seconds)
    finally:
        gc.unfreeze()


def _settings(given: EstimateOptions) -> "Settings":
    from d3s.camera.live.results import FAST, Filter, Settings

    name, checked = parsed_method(given.method, given.option or [], given.depth_range)
    if given.fast:
        with value_of("--fast"):
            checked = checked.replace(**FAST)
    with value_of("--min-confidence or --max-sigma"):
        shown = Filter(min_confidence=given.min_confidence, max_sigma_m=given.max_sigma)
    return Settings(method=name, options=checked, shown=shown)


def _rig_of(source: str, rig: str | None) -> "Rig":
    """Camera of a source: as given, of the recording, or the paper's for the twin."""
    from d3s.rig import Rig

    given = rig_of_word(rig)
    if given is not None:
        return given
    if source.partition(":")[0] == _TWIN:
        return Rig.paper_prototype()
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
