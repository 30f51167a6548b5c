// See fast_deflate.hpp.
#include "data/encode/codecs/fast_deflate.hpp"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace penstock::data {
namespace {

constexpr std::uint32_t kLevel = 1;

// ISA-L counts in 32 bits: longer data are for libdeflate.
constexpr std::size_t kMostPlain = std::size_t{1} << 31;

class IsaL final : public FastDeflate {
  public:
    std::size_t compress(std::span<const std::byte> plain, std::span<std::byte> room) override {
        if (plain.size() > kMostPlain) return 0;
        isal_zstream stream;
        isal_deflate_stateless_init(&stream);
        set(stream);
        stream.end_of_stream = 1;
        offer(stream, plain, room);
        return isal_deflate_stateless(&stream) == COMP_OK ? stream.total_out : 0;
    }

    std::size_t begin(std::span<const std::byte> plain, std::span<std::byte> room) override {
        if (plain.size() > kMostPlain) return 0;
        isal_zstream& stream = *begun_;
        isal_deflate_init(&stream);
        set(stream);
        stream.flush = SYNC_FLUSH;
        offer(stream, plain, room);
        const bool is_whole = isal_deflate(&stream) == COMP_OK && stream.avail_in == 0 && stream.avail_out != 0;
        return is_whole ? stream.total_out : 0;
    }

  private:
    void set(isal_zstream& stream) {
        stream.level = kLevel;
        stream.level_buf = tables_.data();
        stream.level_buf_size = static_cast<std::uint32_t>(tables_.size());
        stream.gzip_flag = IGZIP_DEFLATE;
    }
    static void offer(isal_zstream& stream, std::span<const std::byte> plain, std::span<std::byte> room) {
        // It reads no other way than through a pointer that may write.
        stream.next_in = reinterpret_cast<std::uint8_t*>(const_cast<std::byte*>(plain.data()));
        stream.avail_in = static_cast<std::uint32_t>(plain.size());
        stream.next_out = reinterpret_cast<std::uint8_t*>(room.data());
        stream.avail_out = static_cast<std::uint32_t>(std::min(room.size(), 2 * kMostPlain - 1));
    }

    std::unique_ptr<isal_zstream> begun_ = std::make_unique<isal_zstream>();
    std::vector<std::uint8_t> tables_ = std::vector<std::uint8_t>(ISAL_DEF_LVL1_DEFAULT);
};

}  // namespace

std::unique_ptr<FastDeflate> make_fast_deflate() { return std::make_unique<IsaL>(); }

}  // namespace penstock::data
