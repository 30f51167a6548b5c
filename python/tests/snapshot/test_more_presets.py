"""Snapshots in the layouts of AREPO, GIZMO and GOTHIC: each attribute as h5py reads it, by name, type and shape, and
what packages of their users read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import penstock

KPC, MSUN10, SECOND = 3.0856775815e21, 1.98841e43, 3.0856775815e16
NEWTON = 6.6743e-8 * MSUN10 * SECOND**2 / KPC**3
TOLD: dict[str, Any] = {
    **{"unit_length_cm": KPC, "unit_mass_g": MSUN10, "unit_time_s": SECOND, "box_size": 100.0, "time": 2.5},
    **{"is_cosmological": True, "scale_factor": 0.5, "hubble_param": 0.7, "omega_matter": 0.3, "omega_lambda": 0.7},
    **{"omega_baryon": 0.05, "mass_table": [0, 0.25], "code_version": "2022", "date": "Thu Mar 1"},
}
Wanted = dict[str, tuple[str, tuple[int, ...], Any]]


def particles(doubles: bool = True) -> dict[str, np.ndarray]:
    """Five particles of gas and three of dark matter."""
    draw = np.random.default_rng(2)
    made: dict[str, np.ndarray] = {}
    for kind, count in (("PartType0", 5), ("PartType1", 3)):
        made[f"{kind}/Coordinates"] = (draw.random((count, 3)) * 100).astype("f8" if doubles else "f4")
        made[f"{kind}/Velocities"] = draw.random((count, 3)).astype("f4")
        made[f"{kind}/Masses"] = np.full(count, 0.25, "f4")
        made[f"{kind}/ParticleIDs"] = np.arange(1, count + 1, dtype="u8")
    for name in ("InternalEnergy", "Density", "SmoothingLength", "ElectronAbundance"):
        made[f"PartType0/{name}"] = draw.random(5).astype("f4") + 0.1
    return made


def bodies(doubles: bool = False) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(3)
    real = "f8" if doubles else "f4"
    made = {f"snp/{name}": draw.random((7, 3)).astype(real) for name in ("position", "velocity", "acceleration")}
    made |= {f"snp/{name}": draw.random(7).astype(real) for name in ("mass", "potential")}
    return made | {"snp/index": np.arange(7, dtype="u8")}


def written(name: Path, layout: str, fields: dict[str, np.ndarray], **others: Any) -> Path:
    snapshot = penstock.Snapshot(name, fields, device="host")
    snapshot.use_preset(layout, **{**TOLD, **others})
    snapshot.write()
    with h5py.File(name) as file:
        for path, array in fields.items():
            np.testing.assert_array_equal(file[path][...], array)
    return name


def check(found: h5py.AttributeManager, wanted: Wanted) -> None:
    assert sorted(found) == sorted(wanted)
    for name, (dtype, shape, value) in wanted.items():
        attribute = found.get_id(name)
        assert attribute.shape == shape, name
        assert attribute.dtype == np.dtype(dtype), name
        if dtype.startswith("S"):
            assert list(np.ravel(found[name])) == [np.bytes_(one) for one in np.ravel(value)], name
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-12, err_msg=name)


def header_of(counts: list[int], double: int) -> Wanted:
    """Of GADGET-2."""
    flags = ("Flag_Sfr", "Flag_Cooling", "Flag_StellarAge", "Flag_Metals", "Flag_Feedback")
    return {
        **{"NumPart_ThisFile": ("i4", (6,), counts), "NumPart_Total": ("u4", (6,), counts)},
        **{"NumPart_Total_HighWord": ("u4", (6,), [0] * 6), "MassTable": ("f8", (6,), [0, 0.25, 0, 0, 0, 0])},
        **{"Time": ("f8", (), 0.5), "Redshift": ("f8", (), 1.0), "BoxSize": ("f8", (), 100.0)},
        **{"NumFilesPerSnapshot": ("i4", (), 1), "HubbleParam": ("f8", (), 0.7)},
        **dict.fromkeys(flags, ("i4", (), 0)),
        "Flag_DoublePrecision": ("i4", (), double),
    }


COUNTS = [5, 3, 0, 0, 0, 0]


def test_arepo_has_the_attributes_of_the_code(tmp_path: Path) -> None:
    with h5py.File(written(tmp_path / "s.hdf5", "arepo", particles())) as file:
        assert set(file) == {"Header", "Config", "Parameters", "PartType0", "PartType1"}
        own: Wanted = {
            **{"Omega0": ("f8", (), 0.3), "OmegaLambda": ("f8", (), 0.7), "OmegaBaryon": ("f8", (), 0.05)},
            **{"Composition_vector_length": ("i4", (), 0), "Git_commit": ("S4", (), "2022")},
            **{"Git_date": ("S9", (), "Thu Mar 1"), "UnitLength_in_cm": ("f8", (), KPC)},
            **{"UnitMass_in_g": ("f8", (), MSUN10), "UnitVelocity_in_cm_per_s": ("f8", (), 1e5)},
        }
        check(file["Header"].attrs, header_of(COUNTS, 1) | own)
        check(file["Config"].attrs, {"VORONOI": ("S1", (), "")})
        check(file["Parameters"].attrs, {"ComovingIntegrationOn": ("i4", (), 1)})
        names = ("a_scaling", "h_scaling", "length_scaling", "mass_scaling", "velocity_scaling", "to_cgs")
        for path, values in {
            "PartType0/Coordinates": (1, -1, 1, 0, 0, KPC),
            "PartType1/Velocities": (0.5, 0, 0, 0, 1, 1e5),
            "PartType1/Masses": (0, -1, 0, 1, 0, MSUN10),
            "PartType1/ParticleIDs": (0, 0, 0, 0, 0, 0),
            "PartType0/InternalEnergy": (0, 0, 0, 0, 2, 1e10),
            "PartType0/Density": (-3, 2, -3, 1, 0, MSUN10 / KPC**3),
            "PartType0/ElectronAbundance": (0, 0, 0, 0, 0, 0),
        }.items():
            check(file[path].attrs, {one: ("f8", (), value) for one, value in zip(names, values, strict=True)})


def test_scalings_of_a_run_without_cosmology_are_none(tmp_path: Path) -> None:
    name = written(tmp_path / "s.hdf5", "arepo", particles(doubles=False), is_cosmological=False)
    with h5py.File(name) as file:
        assert file["PartType0/Density"].attrs["a_scaling"] == 0 == file["PartType0/Density"].attrs["h_scaling"]
        assert file["Header"].attrs["Time"] == 2.5 and file["Header"].attrs["Redshift"] == 0
        assert file["Header"].attrs["Flag_DoublePrecision"] == 0


def test_gizmo_has_the_attributes_of_the_code(tmp_path: Path) -> None:
    common: Wanted = {
        **{"GIZMO_version": ("i4", (), 2022), "ComovingIntegrationOn": ("i4", (), 1)},
        **{"UnitMass_In_CGS": ("f8", (), MSUN10), "UnitVelocity_In_CGS": ("f8", (), 1e5)},
        **{"UnitLength_In_CGS": ("f8", (), KPC), "Gravitational_Constant_In_Code_Inits": ("f8", (), NEWTON)},
        **{"Flag_IC_Info": ("i4", (), 0), "Kernel_Function_ID": ("i4", (), 3)},
    }
    cosmology: Wanted = {
        **{"Omega_Matter": ("f8", (), 0.3), "Omega_Lambda": ("f8", (), 0.7), "Omega_Baryon": ("f8", (), 0.05)},
        "Omega_Radiation": ("f8", (), 0),
    }
    with h5py.File(written(tmp_path / "s.hdf5", "gizmo", particles())) as file:
        assert set(file) == {"Header", "PartType0", "PartType1"} and not len(file["PartType0/Density"].attrs)
        check(file["Header"].attrs, header_of(COUNTS, 1) | common | cosmology)
    with h5py.File(written(tmp_path / "s.hdf5", "gizmo", particles(), is_cosmological=False)) as file:
        assert not set(cosmology) & set(file["Header"].attrs)


@pytest.mark.parametrize("doubles", [False, True])
def test_gothic_has_the_attributes_of_the_code_and_names_of_gadget(tmp_path: Path, doubles: bool) -> None:
    fields = bodies(doubles)
    with h5py.File(written(tmp_path / "s.h5", "gothic", fields)) as file:
        own: Wanted = {"time": ("f8", (1,), 2.5), "steps": ("u8", (1,), 0), "number": ("u8", (1,), 7)}
        check(file["snp"].attrs, own | {"useDP": ("i4", (1,), int(doubles))})
        real = "f8" if doubles else "f4"
        check(file["unit_system"].attrs, {"unit": ("i4", (1,), 0), "newton": (real, (1,), NEWTON)})
        length, mass, time = KPC / 3.0856775814913673e21, MSUN10 / 1.98841e33, SECOND / 3.15576e13
        factors = {
            **{"length": length, "time": time, "mass": mass, "density": mass / length**3},
            **{"col_density": mass / length**2, "energy": mass * (length / time) ** 2 * time**4 / time**2 / time**2},
            **{"velocity": length / time, "senergy": (length / time) ** 2, "accel": length / time**2},
        }
        told = file["unit_system/conversion factors"].attrs
        powers = {"time": time, "energy": mass * length**2 * time**-2, "senergy": length**2 * time**-2}
        powers |= {"velocity": length * time**-1, "accel": length * time**-2}
        check(told, {f"{name}2astro": ("f8", (1,), powers.get(name, value)) for name, value in factors.items()})
        labels = file["unit_system/axis labels"].attrs
        assert sorted(labels) == sorted(f"{name}_astro_unit_name" for name in factors)
        assert labels.get_id("length_astro_unit_name").dtype == "S16" and labels["length_astro_unit_name"] == [b"kpc"]
        assert file["PartType1/Coordinates"] == file["snp/position"] and len(file["PartType1"]) == 6
        omegas: Wanted = {"Omega0": ("f8", (), 0.3), "OmegaLambda": ("f8", (), 0.7)}
        omegas["MassTable"] = ("f8", (6,), [0] * 6)
        check(file["Header"].attrs, header_of([0, 7, 0, 0, 0, 0], int(doubles)) | omegas)


def test_particles_of_another_layout_are_not_counted(tmp_path: Path) -> None:
    fields = {**particles(), **bodies()}
    gas = {path: array for path, array in fields.items() if not path.startswith("PartType1")}
    with h5py.File(written(tmp_path / "a.h5", "gothic", gas)) as file:
        assert list(file["Header"].attrs["NumPart_ThisFile"]) == [0, 7, 0, 0, 0, 0]
    with h5py.File(written(tmp_path / "b.h5", "gizmo", fields)) as file:
        assert list(file["Header"].attrs["NumPart_ThisFile"]) == COUNTS


KINDS = {"arepo": "ArepoHDF5Dataset", "gizmo": "GizmoDataset", "gothic": "GadgetHDF5Dataset"}


@pytest.mark.parametrize("layout", KINDS)
def test_yt_reads_it(tmp_path: Path, layout: str) -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    fields = bodies() if layout == "gothic" else particles()
    dataset = yt.load(str(written(tmp_path / "snapshot_000.hdf5", layout, fields)))
    assert layout == "gothic" or type(dataset).__name__ == KINDS[layout]
    found = dataset.all_data()["PartType1", "Masses"]
    wanted = fields["snp/mass"] if layout == "gothic" else fields["PartType1/Masses"]
    np.testing.assert_allclose(np.sort(found.v), np.sort(wanted))
    assert dataset.current_redshift == pytest.approx(1.0)


@pytest.mark.parametrize("layout", KINDS)
def test_pynbody_reads_it(tmp_path: Path, layout: str) -> None:
    pynbody = pytest.importorskip("pynbody")
    fields = bodies() if layout == "gothic" else particles()
    found = pynbody.load(str(written(tmp_path / "s.hdf5", layout, fields)))
    own = {"gothic": "snp/position"}.get(layout, "PartType1/Coordinates")
    np.testing.assert_allclose(found.dm["pos"], fields[own])
