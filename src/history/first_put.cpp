// What put() looks at before anything moves: that there is such a variable, and that its memory is what the history
// takes. The first put is looked at before begin(), which may replace an older history.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "formats/faults.hpp"
#include "history/history_state.hpp"

namespace penstock::history {

using formats::shown;

namespace {

const FieldLayout& layout_of(const FieldLayout& one) noexcept { return one; }
const FieldLayout& layout_of(const RunningField& one) noexcept { return one.layout; }

template <class Fields>
auto& named(Fields& fields, const std::string& name) {
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const auto& one) { return layout_of(one).name == name; });
    if (found != fields.end()) return *found;
    std::string known;
    for (const auto& one : fields) known += (known.empty() ? "" : ", ") + layout_of(one).name;
    throw refused("put", "no variable " + shown(name) + " is defined", "defined are: " + known);
}

}  // namespace

RunningField& HistoryState::field_named(const std::string& name) { return named(fields_, name); }

void HistoryState::check_memory(const FieldLayout& layout, const void* data) const {
    const std::string what = "the memory of variable " + shown(layout.name);
    if (layout.memory_bytes == 0) return;  // an empty box of this process
    if (data == nullptr) throw refused("put", what + " is a null pointer", "give the first element of the array");
    const MemoryKind wanted = on_device() ? MemoryKind::device : MemoryKind::system;
    auto* lowest = const_cast<std::byte*>(static_cast<const std::byte*>(data)) + layout.lowest_bytes;
    try {
        static_cast<void>(context_.wrap(lowest, layout.memory_bytes, wanted));
    } catch (const Error& error) {
        if (error.code() != ErrorCode::invalid_argument) throw;
        throw refused("put", what + ": " + error.info().cause,
                      on_device() ? "this history takes memory of the device " + context_.device().name() +
                                        "; for arrays of the host open it with memory = system (C: PENSTOCK_SYSTEM)"
                                  : "this history takes memory of the host, as its options say");
    }
}

// A process whose begin() was refused by the others must not make a file of its own.
void HistoryState::begin_by(const std::string& variable, const void* data,
                            std::span<const std::int64_t> strides_bytes) {
    if (options_.processes != 1) {
        throw refused("put", "several processes write the file, and this one has not begun",
                      "begin in all of them first, process 0 before the others; penstock_mpi.h does it");
    }
    if (!definitions_.variables.empty()) {  // else begin() says so
        const std::vector<FieldLayout> fields = plan_history(definitions_, options_, false).fields;
        const FieldLayout& defined = named(fields, variable);
        check_memory(strides_bytes.empty() ? defined : with_strides(defined, strides_bytes), data);
    }
    begin();
}

}  // namespace penstock::history
