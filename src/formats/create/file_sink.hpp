// FileSink: metadata written to a file of a context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "formats/create/schema.hpp"
#include "penstock/context.hpp"

namespace penstock::formats {

// Metadata by the page cache, through a file of a context.
class FileSink final : public ByteSink {
  public:
    FileSink(std::string name, bool durable) : name_(std::move(name)), durable_(durable) {}
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override;
    void barrier() override;
    void use(File file) { file_ = std::move(file); }

  private:
    std::string name_;
    bool durable_;
    std::optional<File> file_;
};

}  // namespace penstock::formats
