// A request that is planned and not made, from a dict of Python.
#pragma once

#include "python/shared/binding.hpp"

namespace penstock::python {

struct Question {
    Direction direction;
    Range range;
    MemoryKind kind;
};

// Takes direction, offset_bytes, bytes and kind. Requires: the file outlives the question.
Question question_of(const PythonFile& file, const nb::dict& asked);

}  // namespace penstock::python
