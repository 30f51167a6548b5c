// FileDraft: a history's file before there is one. A schema is laid out once: for the sum that processes compare, for
// the places of the first step, and for the file that is then made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/create/schema.hpp"

namespace penstock::history {

// Keeps nothing but a sum of what is written to it, as FNV-1a makes it, of 8 bytes at a time.
class SummingSink final : public formats::ByteSink {
  public:
    explicit SummingSink(std::string name) : name_(std::move(name)) {}
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override;
    void barrier() override {}
    std::uint64_t sum() const noexcept { return sum_; }

  private:
    std::string name_;
    std::uint64_t sum_ = 0xcbf29ce484222325;
};

// Keeps what is written to it until it is told where that goes.
class KeepingSink final : public formats::ByteSink {
  public:
    explicit KeepingSink(std::string name) : name_(std::move(name)) {}
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override;
    void barrier() override;
    void copy_to(formats::ByteSink& sink) const;
    // What is kept goes there, and so does all that follows. Requires: the sink lives as long as this one.
    void pass_to(formats::ByteSink& sink);

  private:
    struct KeptWrite {
        std::uint64_t offset_bytes = 0;
        std::vector<std::byte> bytes{};
        bool is_barrier = false;
    };
    std::string name_;
    std::vector<KeptWrite> kept_;
    formats::ByteSink* sink_ = nullptr;
};

// Makes what writes one format's metadata.
using MakeGrowing = formats::GrowingFilePtr (*)(const formats::FileSchema&, formats::ByteSink&);

class FileDraft {
  public:
    // Throws Error of the schema.
    FileDraft(const std::string& name, const formats::FileSchema& schema, MakeGrowing make)
        : sink_(name), growing_(make(schema, sink_)) {}
    FileDraft(const FileDraft&) = delete;
    FileDraft& operator=(const FileDraft&) = delete;

    std::uint64_t digest() const;
    // Where the data of the first step go, which is reserved by this. Requires: nothing is compressed.
    const std::vector<formats::DataPlace>& first();
    // As first() where that was asked for and not taken, else of the next step.
    std::vector<formats::DataPlace> reserve(std::span<const formats::StoredChunks> stored);
    formats::GrowingFile& growing() noexcept { return *growing_; }
    void pass_to(formats::ByteSink& sink) { sink_.pass_to(sink); }

  private:
    KeepingSink sink_;
    formats::GrowingFilePtr growing_;
    std::optional<std::vector<formats::DataPlace>> first_{};
    bool is_first_taken_ = false;
};

}  // namespace penstock::history
