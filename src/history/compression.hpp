// What a history's compression means: the filters of a variable, and the chunks that they work on.
//
// Pure. Throws Error{invalid_argument} of what the format, or several processes, cannot have, and Error{unsupported} of
// a filter that this build lacks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/decode/pipeline.hpp"
#include "formats/create/schema.hpp"
#include "history/processes/parts.hpp"
#include "penstock/history.hpp"

namespace penstock::history {

inline constexpr std::uint64_t kUsualChunkBytes = kMiB;  // at most, of the elements of a chunk

// What chunks go through; none where nothing is compressed. `what`: the variable or the history, for errors.
std::vector<data::Filter> filters_of(const std::string& what, const HistoryCompression& compression,
                                     const HistoryOptions& options, std::uint32_t item_bytes);
// Whole layers of the nearest dimensions, so many that they have at most kUsualChunkBytes: a reader of one layer
// decodes little else, and several cores have work.
std::vector<std::uint64_t> usual_chunk(std::span<const std::uint64_t> shape, std::uint64_t item_bytes);

// Gives the variable of the file its filters and its chunks, which are whole in its blocks.
void add_compression(formats::NewVariable& made, const HistoryVariable& given, const HistoryOptions& options,
                     const VariableBox& box);

}  // namespace penstock::history
