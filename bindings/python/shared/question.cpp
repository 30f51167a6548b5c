// See question.hpp.
#include "python/shared/question.hpp"

namespace penstock::python {
namespace {

// A page-aligned address that stands for memory of Context::allocate where none is allocated.
constexpr std::uintptr_t kNowhere = 1 << 21;

MemoryKind memory_kind(const std::string& name) {
    const auto kind = memory_kind_from_string(name);
    if (!kind) {
        throw Error(ErrorCode::invalid_argument, "explain", "there is no kind of memory '" + name + "'",
                    "use device, pinned, managed or system");
    }
    return *kind;
}

}  // namespace

Question question_of(const PythonFile& file, const nb::dict& asked) {
    Question question;
    question.direction = nb::cast<std::string>(asked["direction"]) == "write" ? Direction::write : Direction::read;
    question.kind = memory_kind(nb::cast<std::string>(asked["kind"]));
    question.range = {&file.file, byte_count("offset_bytes", asked["offset_bytes"]),
                      reinterpret_cast<void*>(kNowhere), byte_count("bytes", asked["bytes"])};
    return question;
}

}  // namespace penstock::python
