"""Indexing as NumPy does it, without a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from format_kit import few
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

from penstock._arrays.selection import Box, Selection, select


@few
@given(st.data())
def test_a_selection_names_the_elements_that_numpy_names(data: Any) -> None:
    shape = data.draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6))
    index = data.draw(basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    numbers = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    found = select(shape, index)
    assert found.shape == numbers[index].shape
    lattice = np.ix_(*(f + np.arange(n) * s for f, n, s in zip(found.first, found.counts, found.steps, strict=True)))
    assert np.array_equal(numbers[lattice].reshape(found.shape), numbers[index])
    if found.size:
        inside = numbers[tuple(slice(a, b) for a, b in zip(*found.box, strict=True))]
        assert np.isin(numbers[index], inside).all()


def test_numbers_of_numpy_are_indices() -> None:
    assert select((5,), np.int64(-1)).first == (4,)
    assert select((5,), np.array(2)).dropped == (True,)


def test_the_whole_is_a_selection_too() -> None:
    assert Selection.all_of((2, 3)) == select((2, 3), ...) == select((2, 3), ())


@pytest.mark.parametrize(
    ("index", "kind", "word"),
    [
        (None, TypeError, "reshape"),
        ((0, 0, 0), IndexError, "too many"),
        ((..., ...), IndexError, "one Ellipsis"),
        (5, IndexError, "out of bounds"),
        (-6, IndexError, "out of bounds"),
        (1.5, TypeError, "float"),
        (True, TypeError, "integers"),
        (np.True_, TypeError, "integers"),
        ("name", TypeError, "str"),
        (slice(0, 5, 0), ValueError, "zero"),
    ],
)
def test_what_is_no_lattice_is_refused_with_advice(index: Any, kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word):
        select((5, 4), index)


def test_lists_and_masks_name_what_numpy_names() -> None:
    numbers = np.arange(20).reshape(4, 5)
    for index in ([3, -4, 3], np.array([1, 0], np.uint8), np.array([True, False, True, False]), range(2), [False] * 4):
        found = select((4, 5), (index, slice(1, 3)))
        assert found.picks is not None
        expected = numbers[np.array(index) if isinstance(index, range) else index, 1:3]
        assert found.shape == expected.shape
        assert np.array_equal(numbers[found.picks.numbers, 1:3], expected)
    mask = numbers % 7 == 1
    single = select((4, 5), mask)
    assert single.shape == (3,)
    assert single.box == Box((0, 0), (4, 4))
    assert np.array_equal(numbers[tuple(single.picks.numbers.T)], numbers[mask])
    assert single.transposed.box == Box((0, 0), (4, 4))


def test_an_array_of_one_number_is_a_list_where_it_has_a_dimension() -> None:
    class Tensor:  # as PyTorch's, which are integers too
        ndim = 1

        def __index__(self) -> int:
            return 2

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
            return np.array([2])

    assert select((4,), Tensor()).shape == (1,)
