"""Arrays under Python's own operators: numbers of one element, and comparisons that are refused."""

from __future__ import annotations

import gc
import math
import operator
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_rig import filled

import penstock

NUMBERS = ["bool", "int8", "uint16", "<i4", ">i8", "uint64", "float16", "<f4", ">f8", "complex64"]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("value", [0, 1, 49])  # 49 is the text "1" in memory
@pytest.mark.parametrize("convert", [int, float, complex, bool, operator.index, bytes])
def test_an_element_is_the_number_that_numpy_makes_of_it(
    context: penstock.Context, dtype: str, value: int, convert: Any
) -> None:
    content = np.array(value, dtype)
    array = filled(context, content)
    if convert is bytes:
        assert bytes(array) == content.astype(content.dtype.newbyteorder("=")).tobytes()
        return
    try:
        expected = convert(content)
    except TypeError:
        with pytest.raises(TypeError):
            convert(array)
        return
    assert convert(array) == expected
    assert type(convert(array)) is type(expected)
    if convert is not operator.index:
        assert convert(array.reshape(1, 1)) == expected


@pytest.mark.parametrize("count", [0, 2, 3])
def test_several_elements_are_no_number(context: penstock.Context, count: int) -> None:
    array = filled(context, np.full(count, ord("7"), "uint8"))
    for convert in (int, float, complex):
        with pytest.raises(TypeError, match=f"array of {count} elements is not a number; to_numpy"):
            convert(array)
    with pytest.raises(ValueError, match=f"array of {count} elements is neither true nor false"):
        bool(array)
    for content in (np.zeros(1, "int32"), np.zeros((), "bool"), np.zeros((), "float32")):
        with pytest.raises(TypeError, match="is not an index"):
            operator.index(filled(context, content))


def test_raw_and_compound_elements_are_no_number(context: penstock.Context) -> None:
    for content in (np.array(b"7", "S1").view("V1"), np.zeros((), "i4,i4")):
        for convert in (int, float, complex, bool):
            with pytest.raises(TypeError, match="is not a number"):
                convert(filled(context, content))


def test_comparing_elements_is_refused_and_says_what_to_do(context: penstock.Context) -> None:
    array, other = (filled(context, np.arange(3.0)) for _ in range(2))
    comparisons: list[Any] = [
        lambda: array == other,
        lambda: array != other,
        lambda: array == 1.0,
        lambda: 1.0 == array,  # noqa: SIM300
        lambda: 1.0 in array,
        lambda: array in [other],
        lambda: [other].index(array),
    ]
    for compare in comparisons:
        with pytest.raises(TypeError, match="no '(==|!=|in)': it knows no arithmetic; to_numpy"):
            compare()
    assert (np.arange(3.0) == array).all()  # NumPy takes the elements


BINARY: list[Any] = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
BINARY += [divmod, pow, operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
ORDER: list[Any] = [operator.lt, operator.le, operator.gt, operator.ge]
UNARY: list[Any] = [operator.neg, operator.pos, operator.invert, abs]


class Foreign:
    """An operand that has no answer to any operator."""


@pytest.mark.parametrize("calculate", [*BINARY, *ORDER])
def test_arithmetic_says_what_to_call(context: penstock.Context, calculate: Any) -> None:
    array, other = (filled(context, np.arange(3.0)) for _ in range(2))
    for operands in ((array, 1), (1.5, array), (array, other), (True, array), (array, 1j)):
        with pytest.raises(
            TypeError, match=r"no '.*': it knows no arithmetic; to_numpy\(\) .*cupy.* torch.from_dlpack"
        ):
            calculate(*operands)
    if calculate not in ORDER:
        with pytest.raises(TypeError, match="it knows no arithmetic"):
            calculate(Foreign(), array)


@pytest.mark.parametrize("calculate", UNARY)
def test_arithmetic_with_one_operand_says_what_to_call(context: penstock.Context, calculate: Any) -> None:
    with pytest.raises(TypeError, match="it knows no arithmetic; to_numpy"):
        calculate(filled(context, np.arange(3.0)))


@pytest.mark.parametrize("calculate", [*BINARY, *ORDER])
def test_numpy_calculates_with_the_elements_of_arrays_on_the_host(context: penstock.Context, calculate: Any) -> None:
    content = np.arange(1, 4)
    array = filled(context, content)
    for other in (np.full(3, 2), np.int64(2)) if calculate is not operator.matmul else (np.full(3, 2),):
        assert np.array_equal(calculate(array, other), calculate(content, other))
        assert np.array_equal(calculate(other, array), calculate(other, content))


def test_what_is_not_arithmetic_with_an_array_stays_pythons(context: penstock.Context) -> None:
    array, one = filled(context, np.arange(3)), filled(context, np.array(3))
    assert [0] * one == one * [0] == [0, 0, 0]
    with pytest.raises(TypeError, match="can only concatenate list"):
        [1] + array
    assert "%s" % one == "3"  # noqa: UP031
    with pytest.raises(TypeError, match=r"no '\[...\] =': it knows no arithmetic; to_numpy"):
        array[0] = 1


def test_methods_of_numpys_arrays_are_told_to_be_absent(context: penstock.Context) -> None:
    array: Any = filled(context, np.arange(3.0))
    for name in ("sum", "mean", "max", "astype", "tolist", "copy"):
        assert not hasattr(array, name)
        with pytest.raises(AttributeError, match=f"no '.{name}': it knows no arithmetic; to_numpy"):
            getattr(array, name)
    assert np.mean(array) == 1.0
    with pytest.raises(AttributeError, match="'Array' object has no attribute 'shapee'"):
        array.shapee  # noqa: B018
    with pytest.raises(AttributeError, match="__cuda_array_interface__: this is not GPU memory"):
        array.__cuda_array_interface__  # noqa: B018


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("convert", [round, lambda one: round(one, 1), math.trunc, math.floor, math.ceil])
def test_an_element_is_rounded_as_a_number_of_python(context: penstock.Context, dtype: str, convert: Any) -> None:
    content = np.array(49.7, dtype)
    if content.dtype.kind == "c":
        with pytest.raises(TypeError):
            convert(filled(context, content))
        return
    array = filled(context, content)
    assert convert(array) == convert(content.item())
    assert type(convert(array)) is type(convert(content.item()))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("specification", [".3f", "10.2e", "d", "x", "5", ""])
def test_an_element_is_formatted_as_by_numpy(context: penstock.Context, dtype: str, specification: str) -> None:
    content = np.array(49.5, dtype)
    array = filled(context, content)
    if not specification:
        assert f"{array}" == str(array) == str(content)
        return
    try:
        expected = format(content, specification)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            format(array, specification)
        return
    assert format(array, specification) == expected
    assert format(array.reshape(1, 1), specification) == expected


def test_what_is_no_number_is_not_formatted_as_one(context: penstock.Context) -> None:
    with pytest.raises(TypeError, match="array of 3 elements is not a number; to_numpy"):
        format(filled(context, np.arange(3)), ".3f")
    with pytest.raises(TypeError, match="is not a number"):
        format(filled(context, np.zeros((), "i4,i4")), "d")


def test_datasets_in_files_are_not_compared_before_they_are_read(tmp_path: Path) -> None:
    content = {"a": np.arange(3.0), "b": np.arange(3.0), "scalar": np.array(0.0)}
    penstock.save(tmp_path / "x.nc3", content)
    with penstock.open(tmp_path / "x.nc3", device="host") as file, penstock.open(tmp_path / "x.nc3") as again:
        a, b, scalar = file["a"], file["b"], file["scalar"]
        comparisons: list[Any] = [
            lambda: scalar == 0,
            lambda: scalar != 0,
            lambda: 0 == scalar,  # noqa: SIM300
            lambda: a == b,
            lambda: a == again["a"],
            lambda: a == [0, 1, 2],
            lambda: a != a[...],
            lambda: 1.0 in a,
        ]
        for compare in comparisons:
            with pytest.raises(TypeError, match="its elements are in a file; read them: numpy.asarray"):
                compare()
        for calculate in (*BINARY, operator.lt, operator.ge):
            with pytest.raises(TypeError, match="its elements are in a file; read them: numpy.asarray"):
                calculate(a, 1)
        with pytest.raises(AttributeError, match=r"no '.mean': its elements are in a file; read them: numpy.asarray"):
            a.mean  # type: ignore[attr-defined] # noqa: B018
        assert (a + np.ones(3) == content["a"] + 1).all()  # type: ignore[operator]
        assert (a == content["a"]).all()  # NumPy reads it
        assert (content["a"] == a).all()
        assert not (a != np.float64(1))[1]
        assert a == file["a"] == file["/a"]
        assert not a != file["a"]  # noqa: SIM202
        assert len({a, file["a"], b}) == 2
        assert a in [b, file["a"]][1:]


def test_arrays_are_kept_and_found_by_identity(context: penstock.Context) -> None:
    array, other = (filled(context, np.arange(3.0)) for _ in range(2))
    assert array == array  # noqa: PLR0124
    assert not array != array  # noqa: PLR0124, SIM202
    assert {array: 1, other: 2}[array] == 1
    assert len({array, other}) == 2
    kept: Any = weakref.WeakKeyDictionary({array: 1, other: 2})
    assert kept[array] == 1
    assert array in weakref.WeakSet([other, array])
    held = [array, other]
    held.remove(array)
    assert len(held) == 1
    del array
    gc.collect()
    assert len(kept) == 1
