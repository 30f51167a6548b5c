// Layouts as Lustre tells them: of each kind, cut anywhere, with any byte changed, and with numbers that cannot be.
#include "os/servers/stripes.hpp"

#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

namespace penstock::os {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::uint32_t kMiB = 1024 * 1024;

void put(Bytes& to, std::uint64_t value, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to.push_back(static_cast<std::byte>(value >> 8 * i));
}

struct OneLayout {
    std::uint32_t magic = 0x0BD10BD0, pattern = 1;
    std::uint32_t stripe_bytes = kMiB;
    std::uint16_t servers = 1;
    std::size_t objects = 0;
};

Bytes bytes_of(const OneLayout& layout) {
    Bytes made;
    put(made, layout.magic, 4);
    put(made, layout.pattern, 4);
    put(made, 0x1122334455667788, 8);  // the object's id and sequence
    put(made, 0x99, 8);
    put(made, layout.stripe_bytes, 4);
    put(made, layout.servers, 2);
    put(made, 7, 2);  // generation
    if (layout.magic == 0x0BD30BD0) made.resize(made.size() + 16, std::byte{'p'});
    made.resize(made.size() + 24 * layout.objects, std::byte{0xEE});
    return made;
}

struct Part {
    OneLayout layout;
    std::uint64_t end = ~std::uint64_t{0};
    std::uint32_t flags = 0x10;
};

Bytes in_parts(const std::vector<Part>& parts, std::uint32_t magic = 0x0BD60BD0) {
    Bytes made, rest;
    put(made, magic, 4);
    put(made, 0, 4);  // size; nothing reads it
    put(made, 3, 4);
    put(made, 0, 2);
    put(made, parts.size(), 2);
    made.resize(32);
    for (const Part& part : parts) {
        const Bytes one = bytes_of(part.layout);
        put(made, 1, 4);
        put(made, part.flags, 4);
        put(made, 0, 8);
        put(made, part.end, 8);
        put(made, 32 + 48 * parts.size() + rest.size(), 4);
        put(made, one.size(), 4);
        made.resize(made.size() + 16);
        rest.insert(rest.end(), one.begin(), one.end());
    }
    made.insert(made.end(), rest.begin(), rest.end());
    return made;
}

// Small files on the metadata server, then four OSTs, then all.
Bytes in_three_parts() {
    return in_parts({{{.pattern = 0x100, .stripe_bytes = kMiB, .servers = 0}, kMiB},
                     {{.stripe_bytes = kMiB, .servers = 4, .objects = 4}, 64ULL * kMiB},
                     {{.magic = 0x0BD30BD0, .stripe_bytes = 4 * kMiB, .servers = 0xFFFF}}});
}

TEST(LustreLayout, tells_stripes_of_a_file_with_and_without_a_pool) {
    for (const std::uint32_t magic : {0x0BD10BD0U, 0x0BD30BD0U}) {
        const auto found =
            parse_lustre_layout(bytes_of({.magic = magic, .stripe_bytes = 4 * kMiB, .servers = 8, .objects = 8}));
        ASSERT_TRUE(found.has_value()) << magic;
        EXPECT_EQ(found->bytes, 4U * kMiB);
        EXPECT_EQ(found->servers, 8U);
        EXPECT_FALSE(found->on_all_servers);
        EXPECT_EQ(found->parts, 1U);
    }
}

TEST(LustreLayout, of_a_folder_may_leave_both_to_the_file_system_or_name_all_servers) {
    const auto neither = parse_lustre_layout(bytes_of({.pattern = 0, .stripe_bytes = 0, .servers = 0}));
    ASSERT_TRUE(neither.has_value());
    EXPECT_EQ(neither->bytes + neither->servers, 0U);
    for (const std::uint16_t all : {std::uint16_t{0xFFFF}, std::uint16_t{0xFFE0}}) {
        const auto found = parse_lustre_layout(bytes_of({.servers = all}));
        ASSERT_TRUE(found.has_value());
        EXPECT_TRUE(found->on_all_servers);
    }
    EXPECT_EQ(parse_lustre_layout(bytes_of({.servers = 2000}))->servers, 2000U);
}

TEST(LustreLayout, in_parts_tells_that_of_the_end_of_a_file) {
    const auto found = parse_lustre_layout(in_three_parts());
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->bytes, 4U * kMiB);
    EXPECT_TRUE(found->on_all_servers);
    EXPECT_EQ(found->parts, 3U);
    // Room to extend and parity reach as far, and have no data.
    for (const std::uint32_t flag : {0x40U, 0x80U}) {
        const Part other{{.stripe_bytes = 64 * kMiB}, ~std::uint64_t{0}, flag};
        const auto data = parse_lustre_layout(
            in_parts({{{.stripe_bytes = 2 * kMiB, .servers = 3}, 64ULL * kMiB}, other}, 0x0BD80BD0));
        ASSERT_TRUE(data.has_value());
        EXPECT_EQ(data->bytes, 2U * kMiB);
        EXPECT_EQ(data->servers, 3U);
    }
    // Of mirrors, the first.
    EXPECT_EQ(parse_lustre_layout(in_parts({{{.servers = 5}}, {{.servers = 6}}}))->servers, 5U);
}

TEST(LustreLayout, that_cannot_be_is_none) {
    EXPECT_FALSE(parse_lustre_layout({}).has_value());
    EXPECT_FALSE(parse_lustre_layout(bytes_of({.magic = 0x0BD70BD0})).has_value()) << "foreign";
    EXPECT_FALSE(parse_lustre_layout(bytes_of({.magic = 0xD00BD10B})).has_value()) << "the other order of bytes";
    EXPECT_FALSE(parse_lustre_layout(bytes_of({.stripe_bytes = kMiB + 1})).has_value());
    EXPECT_FALSE(parse_lustre_layout(bytes_of({.stripe_bytes = 4096})).has_value()) << "no multiple of 64 KiB";
    EXPECT_FALSE(parse_lustre_layout(bytes_of({.pattern = 0x100, .servers = 0})).has_value());
    EXPECT_FALSE(parse_lustre_layout(in_parts({})).has_value());
    EXPECT_FALSE(parse_lustre_layout(in_parts({{{.magic = 0x0BD60BD0}}})).has_value()) << "parts of parts";
    Bytes many = in_three_parts();
    many[14] = many[15] = std::byte{0xFF};
    EXPECT_FALSE(parse_lustre_layout(many).has_value());
    for (const std::size_t field : {24U, 28U}) {  // where the first part's layout lies, and how long it is
        Bytes far = in_three_parts();
        for (std::size_t i = 0; i < 4; ++i) far[32 + field + i] = std::byte{0xFF};
        EXPECT_FALSE(parse_lustre_layout(far).has_value()) << field;
    }
}

// The sanitizers see what is read outside; each copy is as long as the bytes, without room behind them.
TEST(LustreLayout, cut_anywhere_or_with_any_byte_changed_reads_nothing_outside) {
    std::mt19937 random(29);
    const std::pair<Bytes, std::size_t> layouts[] = {  // and how many bytes of each are needed
        {bytes_of({.objects = 2}), 32}, {bytes_of({.magic = 0x0BD30BD0}), 48}, {in_three_parts(), 384}};
    for (const auto& [whole, needed] : layouts) {
        for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
            const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
            EXPECT_EQ(parse_lustre_layout(cut).has_value(), bytes >= needed) << bytes << " of " << whole.size();
        }
        for (int i = 0; i < 20000; ++i) {
            Bytes changed = whole;
            for (int one = 0; one < 3; ++one) changed[random() % changed.size()] = static_cast<std::byte>(random());
            const auto found = parse_lustre_layout(changed);
            EXPECT_EQ(found ? found->bytes % 65536 : 0, 0U);
        }
    }
}

TEST(ExtendedAttribute, is_read_whole_or_with_the_cause) {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    ASSERT_GE(fd, 0);
    ::close(fd);
    EXPECT_NE(extended_attribute(name, kLustreLayout).error, 0) << "no Lustre is here";
    EXPECT_EQ(extended_attribute(name + "-absent", kLustreLayout).error, ENOENT);
    const Bytes value = bytes_of({.servers = 9});
    if (::setxattr(name.c_str(), "user.penstock", value.data(), value.size(), 0) == 0) {
        const ExtendedAttribute found = extended_attribute(name, "user.penstock");
        EXPECT_EQ(found.error, 0);
        EXPECT_EQ(found.value, value);
        EXPECT_EQ(extended_attribute(name, "user.absent").error, ENODATA);
    }
    std::filesystem::remove(name);
}

}  // namespace
}  // namespace penstock::os
