"""Depth completed by a diffusion network: Marigold-DC, with weights from a local folder.

Marigold (Ke et al., 2024) predicts depth up to scale and shift from one view. Marigold-DC (Viola et
al., 2025) guides its denoising by sparse depth: after each step the prediction is compared with
what was measured, and latent, scale and shift take a step down the gradient. Here the comparison is
in inverse depth, in units of sigma. Several predictions from different noise give a median, and
their spread gives sigma.

Needs the extra `marigold` and a folder of weights, such as a download of
prs-eth/marigold-depth-v1-0. Nothing is downloaded. A view takes minutes on a CPU.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import InputError, MissingPackageError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.files.depth_image import for_screens
from d3s.lab.dense.fill import measured_pixels
from d3s.types import FloatArray, Image, Mask, Progress

_LATENT_RATE, _AFFINE_RATE = 0.05, 0.005  # steps down the gradient, as the authors have them
_MOST_WEIGHT = 20.0  # weight of a measured pixel against the median one
_NORMAL = 1.4826  # standard deviation of a normal distribution, per median absolute deviation


class MarigoldSettings(NamedTuple):
    """Settings of the network."""

    members: int = 5  # predictions, whose spread becomes sigma
    steps: int = 50  # of denoising
    resolution: int = 768  # longer side of the view that the network sees, in pixels
    seed: int = 0


def complete_depth(
    depth_map: DepthMap,
    weights: str | os.PathLike[str],
    *,
    settings: MarigoldSettings | None = None,
    progress: Progress | None = None,
) -> DepthMap:
    """Fill all holes of a depth map by Marigold-DC.

    Measured depths and their sigma stay as they are. Filled ones have the flag FILLED; their sigma
    is the spread of the predictions, and the misfit at measured pixels. It is not calibrated: on
    which surface a network errs is not known from its spread alone.

    Parameters
    ----------
    depth_map
        Depth map with its left view.
    weights
        Folder of a Marigold depth pipeline as diffusers saves it.
    settings
        Number of predictions and steps, resolution, seed.
    progress
        Called with the number of steps that are done, and of all.

    Raises
    ------
    InputError
        If a package or the folder is missing, or the depth map has no depth or no left view.
    """
    chosen = settings or MarigoldSettings()
    _check_settings(chosen)
    torch, pipeline = _load(weights)
    is_measured = measured_pixels(depth_map)
    if not is_measured.any() or depth_map.intensity is None:
        missing = "no measured depth" if not is_measured.any() else "no left view"
        raise InputError(f"the depth map has {missing}: the network has nothing to go by.")
    guided = _Guided(torch, pipeline, chosen)
    members = guided.predictions(_view(depth_map), _target(depth_map, is_measured), progress)
    return _with_members(depth_map, is_measured, members)


def _check_settings(settings: MarigoldSettings) -> None:
    for name, least in (("members", 2), ("steps", 1), ("resolution", 16)):
        value = getattr(settings, name)
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name}={value!r} must be a whole number of at least {least}.")


def _load(weights: str | os.PathLike[str]) -> tuple[Any, Any]:
    """PyTorch, and the pipeline with a scheduler whose last step is the last noise level."""
    folder = Path(os.fsdecode(weights))
    if not (folder / "model_index.json").is_file():
        raise InputError(
            f"{folder} holds no Marigold weights: model_index.json is not there. Download "
            "prs-eth/marigold-depth-v1-0 to a folder, and name that folder."
        )
    try:
        torch, diffusers, transformers = map(import_module, ("torch", "diffusers", "transformers"))
    except ImportError as error:
        raise MissingPackageError(
            f"Marigold needs {error.name or 'PyTorch'}, which is not installed", "marigold"
        ) from error
    for package in (diffusers, transformers):  # bars for parts of a second
        package.utils.logging.disable_progress_bar()
    pipeline = diffusers.MarigoldDepthPipeline.from_pretrained(
        folder, local_files_only=True, prediction_type="depth", low_cpu_mem_usage=False
    )
    pipeline.scheduler = diffusers.DDIMScheduler.from_config(
        pipeline.scheduler.config, timestep_spacing="trailing"
    )
    for part in (pipeline.unet, pipeline.vae, pipeline.text_encoder):
        part.requires_grad_(requires_grad=False)
    return torch, pipeline.to("cuda" if torch.cuda.is_available() else "cpu")


class _Target(NamedTuple):
    """Measured inverse depth, and its weight."""

    inverse: FloatArray  # 1 / m; 0 where there is none
    weight: FloatArray  # 1 / sigma, relative to the median pixel; 0 where there is none
    nearest_m: float
    farthest_m: float


def _target(depth_map: DepthMap, is_measured: Mask) -> _Target:
    depth_m = np.where(is_measured, depth_map.depth_m, 1.0).astype(np.float64)
    sigma = np.maximum(np.where(is_measured, depth_map.sigma_m, 1.0), 1e-6) / depth_m**2
    weight = np.minimum(np.median(sigma[is_measured]) / sigma, _MOST_WEIGHT)
    known = depth_m[is_measured]
    return _Target(
        np.where(is_measured, 1 / depth_m, 0.0),
        np.where(is_measured, weight, 0.0),
        float(known.min()),
        float(known.max()),
    )


def _view(depth_map: DepthMap) -> Image:
    """Left view as the network expects it: (rows, cols, 3), as screens show it, 0 to 1."""
    if depth_map.colour is not None:
        return (depth_map.colour / 255).astype(np.float32)
    grey = for_screens(np.nan_to_num(np.asarray(depth_map.intensity)), white=None) / 255
    return np.repeat(grey[..., np.newaxis], 3, axis=2).astype(np.float32)


class _Guided:
    """Guided denoising over a pipeline of diffusers."""

    def __init__(self, torch: Any, pipeline: Any, settings: MarigoldSettings) -> None:
        self.torch, self.pipeline, self.settings = torch, pipeline, settings
        self.device = pipeline.unet.device

    def predictions(self, view: Image, target: _Target, progress: Progress | None) -> FloatArray:
        """Depths in metres (members, rows, cols), each from noise of its own."""
        torch, pipeline, settings = self.torch, self.pipeline, self.settings
        image, padding, shape = pipeline.image_processor.preprocess(
            view, settings.resolution, device=self.device, dtype=pipeline.dtype
        )
        text = self._empty_text()

        def depth_of(latent: Any, affine: Any) -> Any:
            """Depth in metres from a latent, a scale and a shift."""
            relative = pipeline.decode_prediction(latent)
            relative = pipeline.image_processor.unpad_image(relative, padding)
            relative = pipeline.image_processor.resize_antialias(
                relative, shape, "bilinear", is_aa=False
            )
            span_m = max(target.farthest_m - target.nearest_m, 0.1 * target.nearest_m)
            return affine[0] ** 2 * span_m * relative + affine[1] ** 2 * target.nearest_m

        found = []
        for member in range(settings.members):
            generator = torch.Generator(self.device).manual_seed(settings.seed + member)
            with torch.no_grad():
                seen, latent = pipeline.prepare_latents(image, None, generator, 1, 1)

            def say(step: int, member: int = member) -> None:
                if progress is not None:
                    done = member * settings.steps + step + 1
                    progress(done, settings.members * settings.steps)

            latent, affine = self._denoised(seen, latent, text, (target, depth_of), say)
            with torch.no_grad():
                found.append(depth_of(latent, affine)[0, 0].float().cpu().numpy())
        return np.stack(found).astype(np.float64)

    def _empty_text(self) -> Any:
        pipeline = self.pipeline
        with self.torch.no_grad():
            tokens = pipeline.tokenizer(
                "",
                padding="do_not_pad",
                max_length=pipeline.tokenizer.model_max_length,
                truncation=True,
                return_tensors="pt",
            )
            return pipeline.text_encoder(tokens.input_ids.to(self.device))[0]

    def _denoised(
        self,
        seen: Any,
        latent: Any,
        text: Any,
        guide: tuple[_Target, Callable[[Any, Any], Any]],
        say: Callable[[int], None],
    ) -> tuple[Any, Any]:
        """Denoise a latent; each step is drawn towards what was measured."""
        torch, pipeline, (target, depth_of) = self.torch, self.pipeline, guide
        scheduler = pipeline.scheduler
        scheduler.set_timesteps(self.settings.steps, device=self.device)
        inverse, weight = (
            torch.as_tensor(one, device=self.device).float()[None, None] for one in target[:2]
        )
        latent = torch.nn.Parameter(latent.detach().clone())
        affine = torch.nn.Parameter(torch.ones(2, device=self.device))
        rates = [{"params": [latent], "lr": _LATENT_RATE}, {"params": [affine], "lr": _AFFINE_RATE}]
        optimiser = torch.optim.Adam(rates)
        for number, step in enumerate(scheduler.timesteps):
            optimiser.zero_grad()
            noise = pipeline.unet(
                torch.cat([seen, latent], dim=1), step, encoder_hidden_states=text
            ).sample
            clean = scheduler.step(noise, step, latent).pred_original_sample
            gap = 1 / depth_of(clean, affine).clamp(min=1e-3) - inverse
            # Relative to the nearest depth, so that the step does not depend on the unit.
            gap = gap * weight * target.nearest_m
            loss = (gap.abs().sum() + (gap * gap).sum()) / (weight > 0).sum()
            loss.backward()
            with torch.no_grad():
                # The gradient gets the size of the noise, whatever the number of measured pixels.
                size = torch.linalg.norm(noise) / torch.linalg.norm(latent.grad).clamp(min=1e-8)
                latent.grad *= size
            optimiser.step()
            with torch.no_grad():
                latent.data = scheduler.step(noise, step, latent).prev_sample
            say(number)
        return latent.detach(), affine.detach()


def _with_members(depth_map: DepthMap, is_measured: Mask, members: FloatArray) -> DepthMap:
    """Depth map whose holes have the median of the predictions, and their spread as sigma."""
    middle = np.median(members, axis=0)
    spread = _NORMAL * np.median(np.abs(members - middle), axis=0)
    misfit = np.abs(middle - depth_map.depth_m)[is_measured]
    common = _NORMAL * float(np.median(misfit))
    sigma_m = np.sqrt(spread**2 + common**2)
    flags = depth_map.flags.copy()
    flags[~is_measured] |= np.uint16(Flag.FILLED)
    return replace(
        depth_map,
        depth_m=np.where(is_measured, depth_map.depth_m, middle).astype(np.float32),
        sigma_m=np.where(is_measured, depth_map.sigma_m, sigma_m).astype(np.float32),
        flags=flags,
    )
