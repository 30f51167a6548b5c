// See generations.hpp.
#include "restart/stored/generations.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace penstock::restart {
namespace {

constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

void read_all(const File& file, std::uint64_t offset, std::span<std::byte> into) {
    if (into.empty()) return;
    const Outcome outcome = file.read({into.data(), into.size(), MemoryKind::system}, offset,
                                      {.path = PathKind::buffered, .caller_waits = true});
    outcome.or_throw();
    if (outcome.bytes != into.size()) throw BadRecord{"it is shorter than its record says"};
}

// Whether the bytes begin a file of HDF5, or a file that lost what was in it.
bool was_a_restart(const File& file, std::uint64_t bytes) {
    std::array<std::byte, 8> begin{};
    if (bytes < begin.size()) return bytes == 0;
    read_all(file, 0, begin);
    return std::memcmp(begin.data(), kHdf5Signature.data(), begin.size()) == 0 ||
           std::all_of(begin.begin(), begin.end(), [](std::byte one) { return one == std::byte{0}; });
}

// A model whose restart has a mistyped folder would begin anew, and find at its end that it cannot write.
void require_folder(const std::string& name) {
    const std::filesystem::path folder = std::filesystem::path(name).parent_path();
    std::error_code unknown;
    if (folder.empty() || std::filesystem::exists(folder, unknown) || unknown) return;
    ErrorInfo info;
    info.code = ErrorCode::not_found;
    info.operation = "find restart";
    info.file = name;
    info.cause = "there is no folder " + folder.string();
    info.advice = "make it, or check the name";
    throw Error(std::move(info));
}

}  // namespace

const RecordedField* StoredGeneration::field(const std::string& wanted) const noexcept {
    const auto found = std::find_if(record.fields.begin(), record.fields.end(),
                                    [&](const RecordedField& one) { return one.name == wanted; });
    return found == record.fields.end() ? nullptr : &*found;
}

// Throws BadRecord and Error.
void Generations::read_record(StoredGeneration& generation, FoundFile& candidate) const {
    const std::uint64_t bytes = generation.file.size_bytes();
    candidate.may_be_replaced = was_a_restart(generation.file, bytes);
    if (bytes < kTrailerBytes) throw BadRecord{"it has " + std::to_string(bytes) + " bytes"};
    std::vector<std::byte> end(kTrailerBytes);
    read_all(generation.file, bytes - kTrailerBytes, end);
    const RecordTrailer trailer = parse_trailer(end, bytes);
    std::string text(trailer.text_bytes, '\0');
    read_all(generation.file, bytes - kTrailerBytes - text.size(), std::as_writable_bytes(std::span(text)));
    generation.record = parse_record(text, trailer);
    if (generation.record.blocks > bytes / sizeof(std::uint32_t)) throw BadRecord{"its record is damaged"};
    generation.sums.resize(generation.record.blocks);
    read_all(generation.file, generation.record.sums_offset, std::as_writable_bytes(std::span(generation.sums)));
    if (sum_of(std::as_bytes(std::span(generation.sums))) != trailer.table_sum) {
        throw BadRecord{"its table of checksums is damaged"};
    }
    std::vector<std::byte> metadata(trailer.metadata_bytes);
    read_all(generation.file, 0, metadata);
    if (sum_of(metadata) != trailer.metadata_sum) throw BadRecord{"its metadata of HDF5 are damaged"};
    generation.number = trailer.generation;
}

Generations::FoundFile Generations::look_at(std::size_t number) const {
    FoundFile candidate{.is_there = true};
    try {
        StoredGeneration found{.candidate = number, .file = context_.open(file_of(number))};
        read_record(found, candidate);
        if (found.number == refused_[number].number) {
            candidate.cause = refused_[number].cause;
        } else {
            candidate.whole = std::move(found);
        }
    } catch (const BadRecord& bad) {
        candidate.cause = bad.cause;
    } catch (const Error& error) {
        if (error.code() == ErrorCode::not_found) return {};
        if (error.code() != ErrorCode::io_error && error.code() != ErrorCode::end_of_file) throw;
        candidate.cause = error.info().cause;
    }
    return candidate;
}

std::array<Generations::FoundFile, Generations::kGenerations> Generations::look() {
    std::array<FoundFile, kGenerations> candidates{look_at(0), look_at(1)};
    for (std::size_t i = 0; i < kGenerations; ++i)
        causes_[i] = candidates[i].cause.empty() ? "" : file_of(i) + ": " + candidates[i].cause;
    return candidates;
}

std::string Generations::passed_over() const {
    return causes_[0] + (causes_[0].empty() || causes_[1].empty() ? "" : "; ") + causes_[1];
}

std::optional<StoredGeneration> Generations::newest() {
    std::array<FoundFile, kGenerations> candidates = look();
    std::optional<StoredGeneration> best;
    for (FoundFile& candidate : candidates) {
        if (candidate.whole && (!best || candidate.whole->number > best->number)) best = std::move(candidate.whole);
    }
    if (best) {
        note_missing(candidates, best->number);
        return best;
    }
    if (!candidates[0].is_there && !candidates[1].is_there) {
        require_folder(name_);
        return best;
    }
    ErrorInfo info;
    info.code = ErrorCode::io_error;
    info.operation = "find restart";
    info.file = name_;
    info.cause = "no generation is whole: " + passed_over();
    info.advice = "begin from the start, or take a copy of an older one";
    throw Error(std::move(info));
}

// From the second generation on there are two files. The one that is missing may have held a newer generation.
void Generations::note_missing(const std::array<FoundFile, kGenerations>& found, std::uint64_t newest) {
    for (std::size_t i = 0; i < kGenerations && newest > 1; ++i) {
        if (found[i].is_there) continue;
        causes_[i] = file_of(i) + ": it is not there, and held generation " + std::to_string(newest - 1) +
                     " or a newer one";
    }
}

void Generations::pass_over(const StoredGeneration& generation, const std::string& cause) {
    refused_[generation.candidate] = {generation.number,
                                      "generation " + std::to_string(generation.number) + ": " + cause};
}

NextGeneration Generations::next() {
    const std::array<FoundFile, kGenerations> candidates = look();
    std::size_t target = 0;
    std::uint64_t newest = std::max(refused_[0].number, refused_[1].number);
    const auto number_of = [](const FoundFile& candidate) { return candidate.whole ? candidate.whole->number : 0; };
    for (std::size_t i = 0; i < kGenerations; ++i) {
        newest = std::max(newest, number_of(candidates[i]));
        if (number_of(candidates[i]) < number_of(candidates[target])) target = i;
    }
    if (!candidates[target].may_be_replaced) {
        ErrorInfo info;
        info.code = ErrorCode::invalid_argument;
        info.operation = "write restart";
        info.file = file_of(target);
        info.cause = "the file of this name is no restart: " + candidates[target].cause;
        info.advice = "remove it, or give the restart another name";
        throw Error(std::move(info));
    }
    return {file_of(target), newest + 1};
}

}  // namespace penstock::restart
