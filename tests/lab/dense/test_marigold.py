"""Marigold-DC: clear words without weights or packages; with tiny random weights, the whole way."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.lab.dense.marigold import MarigoldSettings, _with_members, complete_depth
from depth_maps import made_depth_map

RIG = d3s.Rig.paper_prototype()
TINY = MarigoldSettings(members=2, steps=2, resolution=64)


def made():
    depth_m = np.full((48, 64), 1.0, np.float32)
    depth_m[:, 32:] = 1.5
    depth_m[10:30, 20:40] = np.nan
    view = np.random.default_rng(0).uniform(0, 1, depth_m.shape).astype(np.float32)
    return made_depth_map(depth_m, view=view)


def test_a_folder_without_weights_is_named(tmp_path):
    with pytest.raises(InputError, match=r"holds no Marigold weights.*Download"):
        complete_depth(made(), tmp_path)


@pytest.mark.parametrize("wrong", [{"members": 1}, {"steps": 0}, {"resolution": 2.5}])
def test_wrong_settings_are_named(tmp_path, wrong):
    with pytest.raises(InputError, match=f"{next(iter(wrong))}="):
        complete_depth(made(), tmp_path, settings=MarigoldSettings(**wrong))


def test_missing_packages_are_named(tmp_path, monkeypatch):
    (tmp_path / "model_index.json").write_text("{}")
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(InputError, match=r"pip install .*\[marigold\]"):
        complete_depth(made(), tmp_path)


def test_spread_and_misfit_become_sigma():
    depth_map = made()
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(64) < 32, 1.0, 1.5) * np.ones((48, 1))
    members = truth + rng.normal(0, 0.05, (200, 48, 64))
    dense = _with_members(depth_map, depth_map.valid, members)
    hole = ~depth_map.valid
    assert dense.valid.all()
    assert np.array_equal(dense.sigma_m[~hole], depth_map.sigma_m[~hole])
    assert np.median(dense.sigma_m[hole]) == pytest.approx(0.05, rel=0.1)
    assert ((dense.flags[hole] & d3s.Flag.FILLED) != 0).all()


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Folder of a tiny pipeline with random weights."""
    torch = pytest.importorskip("torch")
    diffusers = pytest.importorskip("diffusers")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("weights")
    words = folder / "words"
    words.mkdir()
    letters = ["<|startoftext|>", "<|endoftext|>", "a", "a</w>"]
    (words / "vocab.json").write_text(
        "{" + ", ".join(f'"{one}": {place}' for place, one in enumerate(letters)) + "}"
    )
    (words / "merges.txt").write_text("#version: 0.2\n")
    pipeline = diffusers.MarigoldDepthPipeline(
        unet=diffusers.UNet2DConditionModel(
            block_out_channels=(16, 32),
            layers_per_block=1,
            norm_num_groups=8,
            sample_size=8,
            in_channels=8,
            out_channels=4,
            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            cross_attention_dim=16,
            attention_head_dim=8,
        ),
        vae=diffusers.AutoencoderKL(
            block_out_channels=(16, 16, 16, 16),
            norm_num_groups=8,
            in_channels=3,
            out_channels=3,
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            latent_channels=4,
        ),
        scheduler=diffusers.DDIMScheduler(prediction_type="v_prediction", clip_sample=False),
        text_encoder=transformers.CLIPTextModel(
            transformers.CLIPTextConfig(
                hidden_size=16,
                intermediate_size=32,
                num_attention_heads=2,
                num_hidden_layers=1,
                vocab_size=len(letters),
                bos_token_id=0,
                eos_token_id=1,
                pad_token_id=1,
            )
        ),
        tokenizer=transformers.CLIPTokenizer(
            str(words / "vocab.json"), str(words / "merges.txt"), model_max_length=77
        ),
        prediction_type="depth",
        scale_invariant=True,
        shift_invariant=True,
    )
    pipeline.save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_tiny_random_weights_fill_all_holes_the_same_way_twice(weights):
    steps = []
    depth_map = made()
    dense = complete_depth(
        depth_map, weights, settings=TINY, progress=lambda *done: steps.append(done)
    )
    again = complete_depth(depth_map, weights, settings=TINY)
    assert dense.valid.all()
    assert (dense.sigma_m > 0).all()
    kept = depth_map.valid
    assert dense.depth_m[kept].tobytes() == depth_map.depth_m[kept].tobytes()
    assert dense.depth_m.tobytes() == again.depth_m.tobytes()
    assert steps == [(1, 4), (2, 4), (3, 4), (4, 4)]
