// Chunks that are one file each, written by the threads that encode them.
//
// A file that a queue writes is opened twice, asked for what it is, and asked for late errors at its end. A chunk that
// is written whole needs none of that: the thread that has its bytes in the cache of its core creates the file, writes
// all with one call, and closes it. What must stay true: the bytes are those that encode_chunks makes; no thread waits
// for a server or for a page cache that is full (see takes_files); what the system refuses names its file; after the
// return no file is open, and an error leaves files that are not whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/encode/encode_chunks.hpp"
#include "os/system.hpp"
#include "penstock/error.hpp"

namespace penstock::data {

// The folders of the files exist. A file that is there is replaced: emptied first where chunks go through filters, so
// that none keeps bytes behind its end, and else written over, for its length stays.
struct FilesOfChunks {
    std::span<const std::string> names;  // of each chunk; not followed where it is a link
    os::System& system = os::real_system();
};

struct FilesWritten {
    CoreResult encoded;  // chunks that are in their files, and what has a fault
    ErrorInfo refused{};  // by the system: the first that was met; ok() when there is none
    std::uint64_t calls = 0;  // that wrote
};

// The rooms of the chunks are not looked at: each thread has one. Throws as encode_chunks.
FilesWritten write_chunk_files(const EncodeWork& work, const FilesOfChunks& files, const CoreOptions& options);

// Whether so many bytes in new files of the folder stay in the page cache of this machine, or are the file system's
// memory, so that no thread has to wait: on no file system that asks a server, and where the kernel does not slow
// writers down. False too of a folder that cannot be opened.
bool takes_files(const std::string& folder, std::uint64_t bytes, os::System& system = os::real_system());

}  // namespace penstock::data
