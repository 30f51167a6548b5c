// Runs a fuzz target without a fuzzer: on every file in the named folders, then on made-up inputs.
//
// So kept inputs (seeds and past crashes) are ordinary tests that any compiler builds. The made-up inputs come from a
// fixed seed, so a failure can be repeated.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace {

constexpr int kMadeUp = PENSTOCK_REPLAY;
constexpr std::size_t kMadeUpBytes = 512;

std::vector<std::filesystem::path> inputs_of(int count, char** folders) {
    std::vector<std::filesystem::path> inputs;
    for (int i = 1; i < count; ++i) {
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
    const auto inputs = inputs_of(count, arguments);
    for (const auto& name : inputs) {
        std::fprintf(stderr, "%s\n", name.c_str());
        std::ifstream stream(name, std::ios::binary);
        const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    std::mt19937_64 random(1);
    for (int i = 0; i < kMadeUp; ++i) {
        std::vector<std::uint8_t> bytes(random() % kMadeUpBytes);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    }
    std::fprintf(stderr, "%zu kept and %d made-up inputs\n", inputs.size(), kMadeUp);
    return inputs.empty() ? 1 : 0;
}
