// Rigs for the Path kit that run on any machine: files in a folder, and files in a MemoryStore.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "base/path_traits.hpp"
#include "conformance/path_rig.hpp"
#include "os/fd.hpp"
#include "os/file/direct.hpp"
#include "path/mapped/mappings.hpp"
#include "path/memory_store.hpp"

namespace penstock::conformance {

inline std::string test_folder() { return testing::TempDir(); }  // TEST_TMPDIR, or /tmp when it is not set

// A file without a name in `folder`, open with and without O_DIRECT.
class OpenFile {
  public:
    OpenFile(const std::string& folder, std::uint64_t id, const Bytes& contents, bool writable) {
        std::string name = folder + "/penstock-XXXXXX";
        const os::UniqueFd made(::mkstemp(name.data()));
        if (!made) throw std::runtime_error("cannot make a file in " + folder);
        const std::string self = "/proc/self/fd/" + std::to_string(made.get());
        buffered_ = os::UniqueFd(::open(self.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
        ::unlink(name.c_str());
        for (std::uint64_t at = 0; at < contents.size();) {
            const ssize_t count =
                ::pwrite(made.get(), contents.data() + at, contents.size() - at, static_cast<off_t>(at));
            if (count <= 0) throw std::runtime_error("cannot write a file in " + folder);
            at += static_cast<std::uint64_t>(count);
        }
        direct_ = os::open_direct(os::real_system(), buffered_.get());
        handle.id = id;
        handle.name = name;
        handle.buffered_fd = buffered_.get();
        handle.direct_fd = direct_.fd.get();
        handle.writable = writable;
        if (direct_.facts.usable) {
            handle.offset_alignment = direct_.facts.offset_alignment;
            handle.memory_alignment = direct_.facts.memory_alignment;
        }
    }
    const os::DirectFacts& direct() const { return direct_.facts; }
    FileHandle handle;

  private:
    os::UniqueFd buffered_;
    os::DirectFile direct_;
};

class FileRig final : public Rig {
  public:
    FileRig(PathKind kind, std::string folder) : kind_(kind), folder_(std::move(folder)) {
        options.mappings = std::make_shared<path::Mappings>();
        const OpenFile probe(folder_, 0, pattern(8192, 0), true);
        const bool direct = bypasses_cache(kind);
        if (direct && !probe.direct().usable) throw std::runtime_error(probe.direct().cause);
        if (direct) {
            traits.offset_step = probe.direct().offset_alignment;
            traits.memory_step = probe.direct().memory_alignment;
        }
        traits.extends = kind != PathKind::mmap;
    }
    std::unique_ptr<Path> path(std::uint32_t depth) override {
        options.depth = depth;
        return make_path(kind_, options);
    }
    FileHandle make_file(const Bytes& contents, bool writable) override {
        files_.push_back(std::make_unique<OpenFile>(folder_, files_.size() + 1, contents, writable));
        FileHandle handle = files_.back()->handle;
        if (traits.offset_step > 1) {
            handle.offset_alignment = traits.offset_step;  // the alignment found for an empty file may be coarser
            handle.memory_alignment = traits.memory_step;
        }
        return handle;
    }
    FileHandle closed_file() override {
        FileHandle file;
        file.id = 1'000'000;
        file.buffered_fd = file.direct_fd = 1'000'000;  // no test opens this many descriptors
        file.writable = true;
        return file;
    }
    Bytes contents(const FileHandle& file) override {
        struct stat status {};
        ::fstat(file.buffered_fd, &status);
        Bytes bytes(static_cast<std::size_t>(status.st_size));
        const ssize_t count = ::pread(file.buffered_fd, bytes.data(), bytes.size(), 0);
        bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
        return bytes;
    }

    PathOptions options;

  private:
    PathKind kind_;
    std::string folder_;
    std::vector<std::unique_ptr<OpenFile>> files_;
};

class StoreRig final : public Rig {
  public:
    std::unique_ptr<Path> path(std::uint32_t depth) override {
        PathOptions options;
        options.depth = depth;
        options.store = store_;
        return make_path(PathKind::memory, options);
    }
    FileHandle make_file(const Bytes& contents, bool writable) override {
        FileHandle file;
        file.id = ++last_;
        file.writable = writable;
        store_->put(file.id, contents);
        return file;
    }
    FileHandle closed_file() override {
        FileHandle file;
        file.id = 1'000'000;
        file.writable = true;
        return file;
    }
    Bytes contents(const FileHandle& file) override { return store_->contents(file.id); }

  private:
    std::shared_ptr<path::MemoryStore> store_ = std::make_shared<path::MemoryStore>();
    std::uint64_t last_ = 0;
};

}  // namespace penstock::conformance
