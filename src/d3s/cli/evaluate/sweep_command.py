"""Builder of the commands that run a sweep: planes, scenes and thresholds.

All three have the same options but for those that choose the pairs, and do the same: make the
sweep, run the evaluation, write its files, print its summary.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from d3s.cli.evaluate import options, tables
from d3s.cli.output import Force, Quiet, value_of
from d3s.cli.sweep import Scheduler, Workers, say_files, sweep_run

if TYPE_CHECKING:
    from d3s.lab.evaluate.evaluation import Evaluation

Option = tuple[Any, Any]
"""Annotation of an option, and its default."""

_BEFORE: dict[str, Option] = {"method": (options.Method, None)}
_AFTER: dict[str, Option] = {
    "patterns": (options.Patterns, None),
    "noise": (options.Noise, None),
    "shape": (options.Shape, None),
    "psf": (options.Psf, None),
    "lens": (options.Lens, None),
    "seed": (options.Seed, None),
    "rig": (options.RigFile, None),
    "output": (options.Output, Path("evaluation")),
    "workers": (Workers, None),
    "scheduler": (Scheduler, None),
    "quick": (options.Quick, False),
    "force": (Force, False),
    "quiet": (Quiet, False),
}
# Options that are fields of every sweep.
_SWEEP_FIELDS = ("patterns", "noise", "shape", "psf", "lens", "seed")


def sweep_command(
    name: str,
    help_text: str,
    show: Callable[[tables.Lines], None],
    *,
    sweep_options: Mapping[str, Option],
    settings: Mapping[str, Option] | None = None,
) -> Callable[..., None]:
    """Build a command that runs an evaluation over a sweep.

    Parameters
    ----------
    name
        Name of the evaluation.
    help_text
        Help of the command.
    show
        Prints the lines of the summary.
    sweep_options
        Options that are fields of this sweep only, by the names of the fields.
    settings
        Options that are settings of the evaluation, by their names; none if left out.
    """
    own = {**(settings or {}), **sweep_options}
    fields = (*sweep_options, *_SWEEP_FIELDS)

    def command(**given: Any) -> None:
        from d3s.lab.evaluate.evaluation import result_files, run_evaluation, write_results

        evaluation = _evaluation(name)
        chosen = options.given(**{name: given[name] for name in fields})
        start = evaluation.sweep.quick() if given["quick"] else evaluation.sweep()
        with value_of("the sweep"):
            sweep = start.replace(**chosen)
        contenders = options.contenders_of(given["method"])
        rig = sweep.default_rig() if given["rig"] is None else options.rig_of(given["rig"])
        files = result_files(evaluation, given["output"])
        flags = {name: given[name] for name in ("workers", "scheduler", "force", "quiet")}
        with sweep_run(files, len(sweep.places), **flags) as run:
            results = run_evaluation(
                evaluation,
                contenders,
                sweep=sweep,
                rig=rig,
                settings={name: list(given[name]) for name in settings or {}},
                **run,
            )
            write_results(results, given["output"], overwrite=given["force"])
        if not given["quiet"]:
            show(results.summary())
            say_files(files)

    # Typer reads the options of a command from its signature.
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in {**_BEFORE, **own, **_AFTER}.items()
        ]
    )
    command.__doc__ = help_text
    return command


def _evaluation(name: str) -> "Evaluation":
    """Import the evaluations when a command runs, so that `d3s --help` stays fast."""
    from d3s.lab.evaluate.planes import PLANES
    from d3s.lab.evaluate.scenes import SCENES
    from d3s.lab.evaluate.thresholds import THRESHOLDS

    return {one.name: one for one in (PLANES, SCENES, THRESHOLDS)}[name]
