"""Snapshots in the layouts of GADGET-4 and SWIFT: each attribute as h5py reads it, by name, type and shape, and what
packages of their users read of them."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from c_abi.snapshot_rig import LIBRARY, TEXT, U64, CSnapshot, Struct

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the package is not installed: it has no library")

KPC, MSUN10, SECOND = 3.0856775815e21, 1.98841e43, 3.0856775815e16
F64 = ctypes.c_double


class _Preset(Struct):
    _fields_ = (
        *(("struct_size", U64), ("layout", TEXT), ("run_name", TEXT), ("system", TEXT), ("code_version", TEXT)),
        *(("date", TEXT), ("time", F64), ("scale_factor", F64), ("box_size", F64 * 3), ("hubble_param", F64)),
        *(("omega_matter", F64), ("omega_lambda", F64), ("omega_baryon", F64), ("unit_length_cm", F64)),
        *(("unit_mass_g", F64), ("unit_time_s", F64), ("mass_table", F64 * 7), ("is_cosmological", ctypes.c_int32)),
        ("is_not_periodic", ctypes.c_int32),
    )


def _preset(layout: str, **others: Any) -> _Preset:
    made = _Preset(layout=layout.encode(), scale_factor=0.5, hubble_param=0.7, time=2.5, is_cosmological=1)
    made.omega_matter, made.omega_lambda, made.omega_baryon = 0.3, 0.7, 0.05
    made.unit_length_cm, made.unit_mass_g, made.unit_time_s = KPC, MSUN10, SECOND
    made.run_name, made.system, made.code_version = b"a run", b"a machine", b"1234abc"
    made.date = b"12:31:00 2026-03-01 UTC"
    made.box_size[:] = [100.0, 200.0, 300.0]
    made.mass_table[1] = 0.25
    for name, value in others.items():
        setattr(made, name, value)
    return made


def _fields(names: dict[str, str]) -> dict[str, np.ndarray]:
    """Five particles of gas and three of dark matter; `names`: of quantities in the layout."""
    draw = np.random.default_rng(2)
    made: dict[str, np.ndarray] = {}
    for kind, count in (("PartType0", 5), ("PartType1", 3)):
        made[f"{kind}/Coordinates"] = draw.random((count, 3)) * 100
        made[f"{kind}/Velocities"] = draw.random((count, 3)).astype("f4")
        made[f"{kind}/Masses"] = np.full(count, 0.25, "f4")
        made[f"{kind}/ParticleIDs"] = np.arange(1, count + 1, dtype="u8")
    for name in names.values():
        made[f"PartType0/{name}"] = draw.random(5).astype("f4")
    made["PartType0/Own"] = np.zeros(5)
    return made


GADGET_NAMES = {"energy": "InternalEnergy", "density": "Density", "length": "SmoothingLength"}
SWIFT_NAMES = {"energy": "InternalEnergies", "density": "Densities", "length": "SmoothingLengths"}


def _written(name: Path, preset: _Preset, fields: dict[str, np.ndarray]) -> Path:
    snapshot = CSnapshot(name)
    for path, array in fields.items():
        snapshot.dataset(path, array)
    snapshot.preset(preset)
    snapshot.write(fields)
    snapshot.close()
    return name


def _check(found: h5py.AttributeManager, wanted: dict[str, tuple[str, tuple[int, ...], Any]]) -> None:
    assert sorted(found) == sorted(wanted)
    for name, (dtype, shape, value) in wanted.items():
        attribute = found.get_id(name)
        assert attribute.shape == shape, name
        if dtype == "S":
            assert attribute.dtype.kind == "S", name  # text of any length is an object
            assert list(np.ravel(found[name])) == [np.bytes_(one) for one in np.ravel(value)], name
        else:
            assert attribute.dtype == np.dtype(dtype), name
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-12, err_msg=name)


def test_gadget4_has_the_attributes_of_the_code(tmp_path: Path) -> None:
    fields = _fields(GADGET_NAMES)
    with h5py.File(_written(tmp_path / "s.hdf5", _preset("gadget4"), fields)) as file:
        assert set(file) == {"Header", "Config", "Parameters", "PartType0", "PartType1"}
        counts = [5, 3, 0, 0, 0, 0]
        header = {
            **dict.fromkeys(("NumPart_ThisFile", "NumPart_Total"), ("u8", (6,), counts)),
            **{"MassTable": ("f8", (6,), [0, 0.25, 0, 0, 0, 0]), "Time": ("f8", (), 0.5), "Redshift": ("f8", (), 1.0)},
            **{"BoxSize": ("f8", (), 100.0), "NumFilesPerSnapshot": ("i4", (), 1)},
            **{"Git_commit": ("S", (), "1234abc"), "Git_date": ("S", (), "12:31:00 2026-03-01 UTC")},
        }
        _check(file["Header"].attrs, header)
        parameters = {"BoxSize": 100.0, "HubbleParam": 0.7, "Omega0": 0.3, "OmegaLambda": 0.7, "OmegaBaryon": 0.05}
        parameters |= {"UnitLength_in_cm": KPC, "UnitMass_in_g": MSUN10, "UnitVelocity_in_cm_per_s": 1e5}
        wanted = {name: ("f8", (), value) for name, value in parameters.items()}
        _check(file["Parameters"].attrs, {**wanted, "ComovingIntegrationOn": ("i4", (), 1)})
        names = ("a_scaling", "h_scaling", "length_scaling", "mass_scaling", "velocity_scaling", "to_cgs")
        for path, values in {
            "PartType0/Coordinates": (1, -1, 1, 0, 0, KPC),
            "PartType1/Velocities": (0.5, 0, 0, 0, 1, 1e5),
            "PartType1/Masses": (0, -1, 0, 1, 0, MSUN10),
            "PartType0/InternalEnergy": (0, 0, 0, 0, 2, 1e10),
            "PartType0/Density": (-3, 2, -3, 1, 0, MSUN10 / KPC**3),
            "PartType0/SmoothingLength": (1, -1, 1, 0, 0, KPC),
        }.items():
            _check(file[path].attrs, {one: ("f8", (), value) for one, value in zip(names, values, strict=True)})
        assert not len(file["PartType0/Own"].attrs) and not len(file["PartType0/ParticleIDs"].attrs)
        for path, array in fields.items():
            np.testing.assert_array_equal(file[path][...], array)


def _swift_header() -> dict[str, tuple[str, tuple[int, ...], Any]]:
    counts, none = [5, 3, 0, 0, 0, 0, 0], [0] * 7
    kinds = ["Gas", "DM", "DMBackground", "Sink", "Stars", "BH", "Neutrino"]
    texts = {"Code": "SWIFT", "RunName": "a run", "System": "a machine", "SnapshotDate": "12:31:00 2026-03-01 UTC"}
    texts |= {"SelectOutput": "Default", "OutputType": "FullVolume"}
    return {
        **{"BoxSize": ("f8", (3,), [100, 200, 300]), "Shift": ("f8", (3,), [0, 0, 0]), "Time": ("f8", (1,), 2.5)},
        **{"Redshift": ("f8", (1,), 1.0), "Scale-factor": ("f8", (1,), 0.5), "Dimension": ("i4", (1,), 3)},
        **dict.fromkeys(("TimeBase_dloga", "TimeBase_dt"), ("f8", (1,), 0)),
        **dict.fromkeys(("NumPart_ThisFile", "TotalNumberOfParticles"), ("i8", (7,), counts)),
        **{"NumPart_Total": ("u4", (7,), counts), "NumPart_Total_HighWord": ("u4", (7,), none)},
        **{"MassTable": ("f8", (7,), none), "InitialMassTable": ("f8", (7,), [0, 0.25, 0, 0, 0, 0, 0])},
        **{"Flag_Entropy_ICs": ("u4", (7,), none), "CanHaveTypes": ("i4", (7,), [1, 1, 0, 0, 0, 0, 0])},
        **{"NumPartTypes": ("i4", (1,), 7), "PartTypeNames": ("S", (7,), kinds)},
        **{"NumFilesPerSnapshot": ("i4", (1,), 1), "ThisFile": ("i4", (1,), 0), "Virtual": ("i4", (1,), 0)},
        **{name: ("S", (), value) for name, value in texts.items()},
    }


def _swift_field(powers: tuple[float, ...], factor: float, words: str, about: str) -> dict[str, Any]:
    """`powers`: of mass, length, time, current, temperature, h and the scale factor."""
    scales = ("U_M", "U_L", "U_t", "U_I", "U_T", "h-scale", "a-scale")
    to_cgs = "Conversion factor to CGS (not including cosmological corrections)"
    to_physical = "Conversion factor to physical CGS (including cosmological corrections)"
    return {
        **{f"{scale} exponent": ("f4", (1,), power) for scale, power in zip(scales, powers, strict=True)},
        **{"Value stored as physical": ("i4", (1,), 0), "Property can be converted to comoving": ("i4", (1,), 1)},
        **{to_cgs: ("f8", (1,), factor), to_physical: ("f8", (1,), factor * 0.5 ** powers[-1])},
        **{"Expression for physical CGS units": ("S", (), words), "Lossy compression filter": ("S", (), "None")},
        "Description": ("S", (), about),
    }


def test_swift_has_the_attributes_of_the_code(tmp_path: Path) -> None:
    fields = _fields(SWIFT_NAMES)
    with h5py.File(_written(tmp_path / "s.hdf5", _preset("swift"), fields)) as file:
        groups = {"Header", "Code", "Cosmology", "GravityScheme", "HydroScheme", "InternalCodeUnits", "Parameters"}
        groups |= {"Policy", "RecordingTriggers", "StarsScheme", "SubgridScheme", "Units", "UnusedParameters"}
        assert set(file) == groups | {"PartType0", "PartType1", "GasParticles", "DMParticles"}
        assert not len(file["SubgridScheme/NamedColumns"])
        _check(file["Header"].attrs, _swift_header())
        units = {"mass": ("U_M", MSUN10), "length": ("U_L", KPC), "time": ("U_t", SECOND), "current": ("U_I", 1.0)}
        units["temperature"] = ("U_T", 1.0)
        for group in ("Units", "InternalCodeUnits"):
            wanted = {f"Unit {one} in cgs ({unit})": ("f8", (1,), v) for one, (unit, v) in units.items()}
            _check(file[group].attrs, wanted)
        cosmology = {"Redshift": 1.0, "Scale-factor": 0.5, "h": 0.7, "H0 [internal units]": 0.07, "Omega_m": 0.3}
        cosmology |= {"Omega_lambda": 0.7, "Omega_b": 0.05, "Omega_cdm": 0.25, "w_0": -1.0, "w_a": 0.0}
        cosmology |= dict.fromkeys(("Omega_r", "Omega_k", "Omega_nu", "Omega_nu_0"), 0.0)
        wanted = {name: ("f8", (1,), value) for name, value in cosmology.items()}
        _check(file["Cosmology"].attrs, {**wanted, "Cosmological run": ("i4", (1,), 1)})
        for kind, alias, count, members in (("PartType0", "Gas", 5, 8), ("PartType1", "DM", 3, 4)):
            link = file.get(f"{alias}Particles", getlink=True)
            assert isinstance(link, h5py.SoftLink) and link.path == f"/{kind}"
            numbers = dict.fromkeys(("NumberOfParticles", "TotalNumberOfParticles"), ("i8", (1,), count))
            _check(file[kind].attrs, {**numbers, "NumberOfFields": ("i4", (1,), members)})
        for path, wanted in {
            "PartType0/Coordinates": _swift_field(
                (0, 1, 0, 0, 0, 0, 1), KPC, "a U_L  [ cm ]", "Co-moving positions of the particles"
            ),
            "PartType1/Velocities": _swift_field(
                (0, 1, -1, 0, 0, 0, 0), 1e5, "U_L U_t^-1  [ cm s^-1 ]", "Peculiar velocities of the particles"
            ),
            "PartType0/Densities": _swift_field(
                (1, -3, 0, 0, 0, 0, -3),
                MSUN10 / KPC**3,
                "a^-3 U_M U_L^-3  [ g cm^-3 ]",
                "Co-moving mass densities of the particles",
            ),
            "PartType1/ParticleIDs": _swift_field((0,) * 7, 1.0, " [ - ]", "Unique IDs of the particles"),
        }.items():
            _check(file[path].attrs, wanted)
        for path, array in fields.items():
            np.testing.assert_array_equal(file[path][...], array)


def test_attributes_of_the_caller_replace_those_of_the_preset(tmp_path: Path) -> None:
    snapshot = CSnapshot(tmp_path / "s.hdf5")
    snapshot.preset(_preset("swift", is_cosmological=0, is_not_periodic=1))
    snapshot.numbers("Header", "Dimension", np.array([2], "i4"))
    snapshot.text("HydroScheme", "Scheme", "SPHENIX")
    snapshot.write({})
    with h5py.File(tmp_path / "s.hdf5") as file:
        assert file["Header"].attrs["Dimension"] == [2] and file["HydroScheme"].attrs["Scheme"] == b"SPHENIX"
        assert list(file["Cosmology"].attrs) == ["Cosmological run"]
        assert file["Parameters"].attrs["InitialConditions:periodic"] == b"0"


def test_yt_reads_a_snapshot_of_gadget4(tmp_path: Path) -> None:
    yt = pytest.importorskip("yt")
    fields = _fields(GADGET_NAMES)
    yt.set_log_level(50)
    dataset = yt.load(str(_written(tmp_path / "s.hdf5", _preset("gadget4"), fields)))
    found = dataset.all_data()
    assert len(found["PartType0", "Masses"]) == 5 and len(found["PartType1", "Masses"]) == 3
    np.testing.assert_allclose(np.sort(found["PartType0", "Density"].v), np.sort(fields["PartType0/Density"]))
    assert dataset.current_redshift == pytest.approx(1.0)


def test_swiftsimio_reads_a_snapshot_of_swift(tmp_path: Path) -> None:
    swiftsimio = pytest.importorskip("swiftsimio")
    fields = _fields(SWIFT_NAMES)
    found = swiftsimio.load(str(_written(tmp_path / "s.hdf5", _preset("swift"), fields)))
    np.testing.assert_array_equal(found.gas.coordinates.value, fields["PartType0/Coordinates"])
    np.testing.assert_allclose(found.gas.masses.to("Msun").value, np.full(5, 0.25e10), rtol=1e-3)
    assert found.metadata.z == pytest.approx(1.0)


@pytest.mark.parametrize(("layout", "names"), [("gadget4", GADGET_NAMES), ("swift", SWIFT_NAMES)])
def test_pynbody_reads_a_snapshot(tmp_path: Path, layout: str, names: dict[str, str]) -> None:
    pynbody = pytest.importorskip("pynbody")
    fields, preset = _fields(names), _preset(layout)
    preset.box_size[:] = [100.0] * 3
    found = pynbody.load(str(_written(tmp_path / "s.hdf5", preset, fields)))
    np.testing.assert_allclose(found.gas["pos"], fields["PartType0/Coordinates"])
