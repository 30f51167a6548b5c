"""penstock.torch beside safetensors.torch, on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
reference = pytest.importorskip("safetensors.torch")

import penstock  # noqa: E402
from penstock import torch as ours  # noqa: E402


def tensors() -> dict[str, torch.Tensor]:
    made = {str(type): torch.arange(12).reshape(3, 4).to(type) for type in (torch.float32, torch.bfloat16, torch.int64)}
    return made | {"flag": torch.tensor([True, False]), "none": torch.empty(0, 3), "one": torch.tensor(2.5)}


def test_load_file_is_a_drop_in(tmp_path: Path) -> None:
    expected = tensors()
    reference.save_file(expected, tmp_path / "m.safetensors")
    for found in (
        ours.load_file(tmp_path / "m.safetensors"),
        ours.load_file(str(tmp_path / "m.safetensors"), device=torch.device("cpu")),
        ours.load((tmp_path / "m.safetensors").read_bytes()),
    ):
        assert found.keys() == expected.keys()
        for name, tensor in found.items():
            assert tensor.dtype == expected[name].dtype
            assert tensor.shape == expected[name].shape
            assert torch.equal(tensor, expected[name])


def test_a_tensor_of_an_unknown_type_is_refused_by_name(tmp_path: Path) -> None:
    raw = b'{"odd":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}'
    content = len(raw).to_bytes(8, "little") + raw + b"12"
    (tmp_path / "m.safetensors").write_bytes(content)
    for load in (lambda: ours.load(content), lambda: ours.load_file(tmp_path / "m.safetensors")):
        with pytest.raises(penstock.Error, match="'odd'.*F4"):
            load()


def test_save_file_is_a_drop_in(tmp_path: Path) -> None:
    expected = tensors()
    ours.save_file(expected, tmp_path / "m.safetensors", metadata={"format": "pt"})
    found = reference.load_file(tmp_path / "m.safetensors")
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_transposed_and_learning_tensors_are_saved(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4))
    ours.save_file({"w": weight, "t": weight.T}, tmp_path / "m.safetensors")
    found = reference.load_file(tmp_path / "m.safetensors")
    assert torch.equal(found["w"], weight.detach())
    assert torch.equal(found["t"], weight.detach().T)


@pytest.mark.skipif(not hasattr(torch, "float8_e4m3fn"), reason="this PyTorch has no float8")
def test_float8_goes_both_ways(tmp_path: Path) -> None:
    expected = torch.arange(16.0).to(torch.float8_e4m3fn)
    ours.save_file({"x": expected}, tmp_path / "m.safetensors")
    found = ours.load_file(tmp_path / "m.safetensors")["x"]
    assert found.dtype == expected.dtype
    assert torch.equal(found.view(torch.uint8), expected.view(torch.uint8))


def test_tensors_are_read_into_and_written_from(tmp_path: Path) -> None:
    source = torch.arange(60.0).reshape(3, 4, 5)
    penstock.save(tmp_path / "x.npy", source, "host")
    with penstock.open(tmp_path / "x.npy", device="host") as file:
        out = torch.zeros(2, 4, 5)
        assert file["data"].read(slice(1, 3), out=out) is out
        assert torch.equal(out, source[1:3])
        with pytest.raises(TypeError, match="float64"):
            file["data"].read(out=torch.zeros(3, 4, 5, dtype=torch.float64))
        with pytest.raises(ValueError, match="strides"):
            file["data"].read(out=torch.zeros(3, 5, 4).mT)
    assert torch.equal(penstock.load(tmp_path / "x.npy", "host", like=torch.empty(0)), source)
    penstock.save(tmp_path / "t.npy", source.permute(2, 0, 1), "host")
    assert torch.equal(penstock.load(tmp_path / "t.npy", "host", like=torch.empty(0)), source.permute(2, 0, 1))
