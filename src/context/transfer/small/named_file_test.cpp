// Files that are opened for one small read: the bytes and evidence of others, by fewer calls of the system.
#include "context/transfer/small/named_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "context/seams.hpp"
#include "context/test_files.hpp"
#include "os/system.hpp"

namespace penstock::context {
namespace {

using test::stamped;
using test::TempDirectory;
using test::write_file;

class CountedOpens : public os::System {
  public:
    int open(const char* path, int flags, unsigned mode) override {
        ++opens;
        return System::open(path, flags, mode);
    }
    int opens = 0;
};

class NamedFileTest : public testing::Test {
  protected:
    void SetUp() override { write_file(name_, stamped(20'000)); }
    Context make(ContextOptions options = {}) {
        options.device = "host";
        return make_context(options, {.system = &system_});
    }
    TempDirectory directory_;
    std::string name_ = directory_.file("data");
    CountedOpens system_;
};

std::string told(const std::optional<SmallRead>& read) {
    Evidence evidence = read.value().evidence();
    evidence.seconds = 0;
    return evidence.to_json();
}

TEST_F(NamedFileTest, gives_bytes_and_evidence_of_a_file_by_opening_it_once) {
    const Context context = make();
    const Buffer buffer = context.allocate(4096);
    std::vector<unsigned char> plain(4096);
    for (const MemoryView memory : {buffer.view(), MemoryView{plain.data(), 4096, MemoryKind::system}}) {
        for (int turn = 0; turn < 2; ++turn) {
            const auto file = NamedFile::open(context, name_);
            ASSERT_TRUE(file);
            const int before = system_.opens;
            const auto read = file->read(memory, 1234);
            ASSERT_TRUE(read);
            EXPECT_TRUE(turn == 0 || system_.opens == before);
            const auto* held = static_cast<const unsigned char*>(memory.data);
            EXPECT_EQ(std::vector<unsigned char>(held, held + 4096), stamped(4096, 1234));
            EXPECT_EQ(told(read), told(context.open(name_).try_small_read(memory, 1234)));
            EXPECT_EQ(file->status().st_size, 20'000);
        }
    }
}

TEST_F(NamedFileTest, gives_many_ranges_as_a_file_does) {
    const Context context = make();
    std::vector<unsigned char> here(9000), there(9000);
    const auto ranges = [](std::vector<unsigned char>& memory) {
        return std::vector<Range>{{nullptr, 100, memory.data(), 1000},
                                  {nullptr, 1100, memory.data() + 1000, 1000},
                                  {nullptr, 12'000, memory.data() + 3000, 1000},
                                  {nullptr, 50, memory.data() + 5000, 77}};
    };
    const auto read = NamedFile::open(context, name_)->read_many({here.data(), 9000, MemoryKind::system}, ranges(here));
    const File file = context.open(name_);
    const auto by_file = file.try_small_reads({there.data(), 9000, MemoryKind::system}, ranges(there));
    ASSERT_TRUE(read && by_file);
    EXPECT_EQ(here, there);
    EXPECT_EQ(std::vector<unsigned char>(here.begin() + 3000, here.begin() + 4000), stamped(1000, 12'000));
    EXPECT_EQ(read->operations, 3u) << "two continue each other";
    EXPECT_EQ(std::pair(read->operations, read->bytes), std::pair(by_file->operations, by_file->bytes));
    ASSERT_EQ(read->samples.size(), 2u);
    for (std::size_t at = 0; at < 2; ++at) {
        EXPECT_EQ(told(read->samples[at]), told(by_file->samples[at]));
    }
}

TEST_F(NamedFileTest, is_none_where_a_file_would_be_read_in_another_way) {
    const Context context = make();
    EXPECT_FALSE(NamedFile::open(context, directory_.file("absent")));
    EXPECT_FALSE(NamedFile::open(context, directory_.path()));
    EXPECT_FALSE(NamedFile::open(context, "/proc/self/status"));
    const std::string pipe = directory_.file("pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_FALSE(NamedFile::open(context, pipe));
    for (const PathKind path : {PathKind::direct, PathKind::mmap}) {
        EXPECT_FALSE(NamedFile::open(make({.path = path}), name_));
    }
    EXPECT_FALSE(NamedFile::open(make({.workers = 2}), name_));
    const Profile profile = context.identity(directory_.path());
    std::ofstream(directory_.file("here.csv")) << profile_text(profile);
    EXPECT_FALSE(NamedFile::open(make({.profiles = {directory_.path()}}), name_)) << "the profile chooses";
}

TEST_F(NamedFileTest, reads_nothing_that_is_short_or_leaves_its_memory) {
    const Context context = make();
    const Buffer buffer = context.allocate(4096);
    const auto file = NamedFile::open(context, name_);
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->read(buffer.view(), 16'000));
    EXPECT_FALSE(file->read(buffer.view(), UINT64_MAX - 1));
    EXPECT_FALSE(file->read({static_cast<std::byte*>(buffer.data()) + 100, 4096}, 0));
    EXPECT_FALSE(file->read({buffer.data(), 0}, 0));
    std::vector<unsigned char> room(5000);
    unsigned char* const memory = room.data() + 8;
    const auto many = [&](const Range& second) {
        const std::vector<Range> both{{nullptr, 0, memory, 1000}, second};
        return file->read_many({memory, 4000, MemoryKind::system}, both).has_value();
    };
    EXPECT_TRUE(many({nullptr, 19'000, memory + 3000, 1000}));
    EXPECT_FALSE(many({nullptr, 19'001, memory + 3000, 1000})) << "the file ends in it";
    EXPECT_FALSE(many({nullptr, 0, memory + 3001, 1000})) << "it leaves the memory";
    EXPECT_FALSE(many({nullptr, 0, memory - 1, 1000}));
    EXPECT_FALSE(many({nullptr, 0, memory, 0}));
    EXPECT_FALSE(many({nullptr, UINT64_MAX - 1, memory, 1000}));
    EXPECT_TRUE(file->read(buffer.view(), 15'904));
}

}  // namespace
}  // namespace penstock::context
