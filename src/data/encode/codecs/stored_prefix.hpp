// Bytes in front of a chunk that need no search: the low bytes of shuffled floats are noise, which deflate makes no
// smaller, or zeros, where mantissas were cut.
//
// Deflate may keep such bytes as they are, in stored blocks, which end at whole bytes; so a stream can begin with them,
// and what a library makes of the rest follows. To look for matches in noise is most of the time that deflate takes.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace penstock::data {

// How many bytes from the first on are to be stored: whole blocks, and never the last one. `shrunk`: what the library
// makes of some bytes. It is asked about parts, so that rows that repeat are noticed; of the others the counts of their
// values must say that no code makes them smaller.
std::size_t stored_prefix(std::span<const std::byte> plain,
                          const std::function<std::size_t(std::span<const std::byte>)>& shrunk);
// How many bytes from the first on are long runs of one byte, and never the last block.
std::size_t runs_prefix(std::span<const std::byte> plain);
// Bytes that stored blocks of so many take.
std::size_t stored_bytes(std::size_t plain);
// Writes them, none of them the last of its stream. Requires: room has stored_bytes(plain.size()).
void put_stored(std::span<const std::byte> plain, std::byte* room);

}  // namespace penstock::data
