// SeenFile: what a reader of HDF5 finds of datasets that grow, in bytes that a test made of recorded writes. It follows
// the format specification and nothing of the writer, refuses what the HDF5 library refuses, and is fast enough to look
// after each of thousands of writes.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "formats/create/schema.hpp"

namespace penstock::formats {

// Keeps what is written, and each write.
class RecordingSink final : public ByteSink {
  public:
    struct Write {
        std::uint64_t offset = 0;
        std::vector<std::byte> bytes{};
        bool is_barrier = false;
        std::uint64_t published = 0;  // steps whose publish() had returned
    };
    const std::string& name() const override { return name_; }
    void write(std::uint64_t offset, std::span<const std::byte> bytes) override {
        if (fails_after-- == 0) throw std::runtime_error("the disk is full");
        writes.push_back({offset, {bytes.begin(), bytes.end()}, false, published});
    }
    void barrier() override { writes.push_back({.is_barrier = true, .published = published}); }

    std::vector<Write> writes{};
    std::uint64_t published = 0;
    long fails_after = -1;

  private:
    std::string name_ = "memory.h5";
};

inline void replay(std::vector<std::byte>& file, const RecordingSink::Write& write) {
    if (file.size() < write.offset + write.bytes.size()) file.resize(write.offset + write.bytes.size());
    std::copy(write.bytes.begin(), write.bytes.end(), file.begin() + static_cast<std::ptrdiff_t>(write.offset));
}

class SeenFile {
  public:
    explicit SeenFile(std::span<const std::byte> file) : file_(file), is_open_(true) {
        const std::uint64_t version = number(8, 1);
        const std::uint64_t base = version == 0 ? 24 : 28;
        half_entries_ = version == 0 ? 32 : number(24, 2);
        end_ = number(base + 16, 8);
        if (end_ > file.size()) throw std::runtime_error("the file is shorter than its superblock says");
        for (const Message& message : messages(number(base + 40, 8)))
            if (message.type == 6) add_link(message);
    }

    std::uint64_t steps(const std::string& name) const {
        for (const Message& message : messages_of(name))
            if (message.type == 1) return number(message.offset + 8, 8);
        throw std::runtime_error("no dataspace");
    }

    // Where the chunk of the step lies: its offset and its bytes.
    std::pair<std::uint64_t, std::uint64_t> chunk(const std::string& name, std::uint64_t step) const {
        for (const Message& message : messages_of(name))
            if (message.type == 8) return find(number(message.offset + 3, 8), number(message.offset + 2, 1), step);
        throw std::runtime_error("no layout");
    }

  private:
    struct Message {
        std::uint64_t type, offset;
    };

    std::uint64_t number(std::uint64_t offset, std::uint64_t bytes) const {
        if (offset + bytes > (is_open_ && end_ != 0 ? end_ : file_.size()))
            throw std::runtime_error("an object behind the end that the superblock tells");
        std::uint64_t value = 0;
        std::memcpy(&value, file_.data() + offset, bytes);
        return value;
    }

    std::vector<Message> messages(std::uint64_t header) const {
        std::vector<Message> found;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks{{header + 16, number(header + 8, 4)}};
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            const auto block = blocks[i];
            for (std::uint64_t at = block.first; at < block.first + block.second; at += 8 + number(at + 2, 2)) {
                found.push_back({number(at, 2), at + 8});
                if (found.back().type == 0x10) blocks.emplace_back(number(at + 8, 8), number(at + 16, 8));
            }
        }
        if (found.size() != number(header + 2, 2)) throw std::runtime_error("not as many messages as the header says");
        return found;
    }

    // Read once: a test asks for each step of a variable.
    const std::vector<Message>& messages_of(const std::string& name) const {
        const std::uint64_t header = links_.at(name);
        const auto known = read_.find(header);
        return known != read_.end() ? known->second : read_.emplace(header, messages(header)).first->second;
    }

    // A hard link, with kind and order, whose name has two bytes of length.
    void add_link(const Message& message) {
        const std::uint64_t length = number(message.offset + 11, 2), at = message.offset + 13;
        std::string name(length, ' ');
        for (std::uint64_t i = 0; i < length; ++i) name[i] = static_cast<char>(number(at + i, 1));
        links_[name] = number(at + length, 8);
    }

    std::pair<std::uint64_t, std::uint64_t> find(std::uint64_t node, std::uint64_t dimensions,
                                                 std::uint64_t step) const {
        const std::uint64_t key = 8 + 8 * dimensions, count = number(node + 6, 2);
        if (number(node, 4) != 0x45455254) throw std::runtime_error("no node of an index");
        number(node + 24 + 2 * half_entries_ * (key + 8) + key - 1, 1);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t at = node + 24 + i * (key + 8);
            if (step < number(at + 8, 8) || step >= number(at + key + 8 + 8, 8)) continue;
            if (number(node + 5, 1) != 0) return find(number(at + key, 8), dimensions, step);
            return {number(at + key, 8), number(at, 4)};
        }
        throw std::runtime_error("no chunk of step " + std::to_string(step));
    }

    std::span<const std::byte> file_;
    bool is_open_;
    std::uint64_t end_ = 0, half_entries_ = 0;
    std::map<std::string, std::uint64_t> links_{};
    mutable std::map<std::uint64_t, std::vector<Message>> read_{};
};

}  // namespace penstock::formats
