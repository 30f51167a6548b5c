// Machine profiles through the C ABI: the fields `profile` and `adaptive` of penstock_context_options affect the choice
// of the path. A mistake in a profile reaches the caller as an error or as a note in the evidence.
//
// This test is in C++ because it makes a profile of this machine, which the C ABI cannot do.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <memory>

#include "context/test_files.hpp"
#include "penstock.h"
#include "penstock/profile.hpp"

namespace penstock {
namespace {

constexpr std::uint64_t kBytes = 8 * kMiB;
constexpr double kAges = 100;  // seconds; no transfer of kBytes takes that long

using Handle = std::unique_ptr<penstock_context, void (*)(penstock_context*)>;

class AbiProfile : public testing::Test {
  protected:
    AbiProfile() { test::write_file(file_, test::stamped(kBytes)); }

    // Returns a profile of this machine in which mmap takes `seconds` and every other path ten times as long.
    Profile favouring_mmap(double seconds) const {
        ContextOptions options;
        options.device = "host";
        Profile profile = Context(options).identity(directory_.path());
        for (const bool cached : {true, false}) {
            for (const PathKind path : {PathKind::mmap, PathKind::buffered}) {
                ProfileRow row;
                row.cached = cached;
                row.path = path;
                row.bytes = kBytes;
                row.seconds = path == PathKind::mmap ? seconds : 10 * seconds;
                row.samples = 3;
                profile.rows.push_back(row);
            }
        }
        return profile;
    }
    std::string write(const std::string& name, const Profile& profile) const {
        std::ofstream(directory_.file(name)) << profile_text(profile);
        return directory_.file(name);
    }
    int make(const char* profile, bool adaptive = false) {
        penstock_context_options options = PENSTOCK_CONTEXT_OPTIONS_INIT;
        options.device = "host";
        options.profile = profile;
        options.adaptive = adaptive ? 1 : 0;
        penstock_context* made = nullptr;
        const int code = penstock_context_create(&options, &made, &error_);
        context_.reset(made);
        return code;
    }
    // Reads the whole file. Returns its evidence and leaves the path in `result_`.
    std::string read() {
        penstock_file* file = nullptr;
        penstock_buffer* buffer = nullptr;
        penstock_transfer* transfer = nullptr;
        penstock_buffer_options size = PENSTOCK_BUFFER_OPTIONS_INIT;
        penstock_request request = PENSTOCK_REQUEST_INIT;
        size.bytes = kBytes;
        std::array<char, 1 << 16> json{};
        penstock_text text = {json.data(), json.size(), 0};
        EXPECT_EQ(penstock_file_open(context_.get(), file_.c_str(), nullptr, &file, &error_), 0) << error_.message;
        EXPECT_EQ(penstock_buffer_allocate(context_.get(), &size, &buffer, &error_), 0) << error_.message;
        EXPECT_EQ(penstock_buffer_memory(buffer, &request.memory, &error_), 0) << error_.message;
        EXPECT_EQ(penstock_start_read(file, &request, &transfer, &error_), 0) << error_.message;
        EXPECT_EQ(penstock_transfer_result(transfer, &result_, &error_), 0) << error_.message;
        EXPECT_EQ(penstock_transfer_evidence(transfer, &text, &error_), 0) << error_.message;
        EXPECT_LE(text.needed, json.size());
        penstock_transfer_free(transfer);
        penstock_buffer_free(buffer);
        penstock_file_close(file, nullptr);
        return json.data();
    }
    static double predicted_seconds(const std::string& evidence) {
        constexpr std::string_view kKey = "\"predicted_seconds\":";
        const std::size_t at = evidence.find(kKey);
        EXPECT_NE(at, std::string::npos) << evidence;
        return at == std::string::npos ? 0 : std::stod(evidence.substr(at + kKey.size()));
    }

    test::TempDirectory directory_;
    const std::string file_ = directory_.file("data.bin");
    Handle context_{nullptr, penstock_context_destroy};
    penstock_error error_ = PENSTOCK_ERROR_INIT;
    penstock_result result_ = PENSTOCK_RESULT_INIT;
};

TEST_F(AbiProfile, turns_the_choice) {
    ASSERT_EQ(make(nullptr), PENSTOCK_OK) << error_.message;
    EXPECT_NE(read().find("no machine profile"), std::string::npos);
    EXPECT_STREQ(result_.path, "buffered");
    ASSERT_EQ(make(write("here.csv", favouring_mmap(1e-3)).c_str()), PENSTOCK_OK) << error_.message;
    EXPECT_NE(read().find("the fastest measured here"), std::string::npos);
    EXPECT_STREQ(result_.path, "mmap");
    ASSERT_EQ(make(directory_.path().c_str()), PENSTOCK_OK) << error_.message;
    read();
    EXPECT_STREQ(result_.path, "mmap") << "a directory of profiles";
}

TEST_F(AbiProfile, of_another_machine_is_refused_with_what_differs) {
    Profile other = favouring_mmap(1e-3);
    other.machine.kernel = "2.6.32";
    const std::string name = write("other.csv", other);
    EXPECT_EQ(make(name.c_str()), PENSTOCK_UNSUPPORTED);
    EXPECT_EQ(context_, nullptr);
    EXPECT_EQ(error_.file, name);
    EXPECT_NE(std::string_view(error_.cause).find("kernel 2.6.32 there"), std::string_view::npos) << error_.cause;
    EXPECT_NE(std::string_view(error_.advice).find("penstock calibrate"), std::string_view::npos) << error_.advice;
}

TEST_F(AbiProfile, in_a_directory_that_does_not_fit_is_passed_over_with_a_note) {
    Profile other = favouring_mmap(1e-3);
    other.machine.kernel = "2.6.32";
    write("other.csv", other);
    ASSERT_EQ(make(directory_.path().c_str()), PENSTOCK_OK) << error_.message;
    EXPECT_NE(read().find("is of another machine: kernel 2.6.32 there"), std::string::npos);
    EXPECT_STREQ(result_.path, "buffered");
}

TEST_F(AbiProfile, that_is_garbage_absent_or_nameless_is_an_error_with_words) {
    const std::string garbage = directory_.file("garbage.csv"), absent = directory_.file("absent.csv");
    std::ofstream(garbage) << "\x7f"
                              "ELF\n\x01\x02";
    EXPECT_EQ(make(garbage.c_str()), PENSTOCK_INVALID_ARGUMENT);
    EXPECT_EQ(context_, nullptr);
    EXPECT_NE(std::string_view(error_.cause).find("line 1"), std::string_view::npos) << error_.cause;
    EXPECT_EQ(make(absent.c_str()), PENSTOCK_NOT_FOUND);
    EXPECT_EQ(error_.file, absent);
    EXPECT_EQ(make(""), PENSTOCK_INVALID_ARGUMENT);
    EXPECT_NE(std::string_view(error_.message).find("the name is empty"), std::string_view::npos) << error_.message;
}

TEST_F(AbiProfile, adaptive_contexts_correct_what_it_predicts_and_others_do_not) {
    const std::string name = write("slow.csv", favouring_mmap(kAges));
    for (const bool adaptive : {true, false}) {
        ASSERT_EQ(make(name.c_str(), adaptive), PENSTOCK_OK) << error_.message;
        EXPECT_DOUBLE_EQ(predicted_seconds(read()), kAges);
        const double second = predicted_seconds(read());
        if (adaptive)
            EXPECT_LT(second, kAges) << "the first read taught nothing";
        else
            EXPECT_DOUBLE_EQ(second, kAges);
    }
}

}  // namespace
}  // namespace penstock
