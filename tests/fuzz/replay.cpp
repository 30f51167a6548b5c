// Runs a fuzz target without a fuzzer: replay MADE_UP FOLDER..., on every file in the folders, then on so many made-up
// inputs.
//
// So kept inputs (seeds and past crashes) are ordinary tests that any compiler builds. The made-up inputs come from a
// fixed seed, so a failure can be repeated.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace {

constexpr std::size_t kMadeUpBytes = 512;

std::vector<std::filesystem::path> inputs_of(int count, char** folders) {
    std::vector<std::filesystem::path> inputs;
    for (int i = 2; i < count; ++i) {
        if (!std::filesystem::is_directory(folders[i])) continue;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folders[i])) {
            if (entry.is_regular_file()) inputs.push_back(entry.path());
        }
    }
    std::sort(inputs.begin(), inputs.end());
    return inputs;
}

}  // namespace

int main(int count, char** arguments) {
    const long made_up = count > 1 ? std::strtol(arguments[1], nullptr, 10) : 0;
    // A broken promise is a failure like others: a test that must fail may not end by a signal.
    std::signal(SIGABRT, [](int) { std::_Exit(1); });
    const auto inputs = inputs_of(count, arguments);
    for (const auto& name : inputs) {
        std::fprintf(stderr, "%s\n", name.c_str());
        std::ifstream stream(name, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::mt19937_64 random(1);
    for (long i = 0; i < made_up; ++i) {
        std::vector<std::uint8_t> bytes(random() % kMadeUpBytes);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::fprintf(stderr, "%zu kept and %ld made-up inputs\n", inputs.size(), made_up);
    return inputs.empty() || made_up == 0 ? 1 : 0;
}
