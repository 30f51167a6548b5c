// A C++ program with memory of a GPU in file streams, that knows nothing of Penstock: cxx_streams device|managed FILE
//
// A stream hands what it still holds and the caller's array to one writev(): text before the array makes the array the
// second of two pieces, an array behind an array the only one. Without a preloaded library device memory is a failure
// of the stream.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

extern "C" void* fake_allocate(std::size_t bytes, int managed);
extern "C" void* fake_reach(const void* data);

namespace {

constexpr long kBytes = 12L << 20;

void check(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

char of(long at) { return static_cast<char>(at * 31 + at / 4096); }

void write_all(const char* name, const char* data) {
    std::ofstream out(name, std::ios::binary);
    out << "head";
    check(!!out.write(data, kBytes), "an array behind text is not written");
    check(!!out.write(data, kBytes), "an array behind an array is not written");
    out << "tail";
    out.close();
    check(!out.fail(), "close fails");
}

// Is to be "head", the array twice, "tail".
void check_file(const char* name) {
    std::ifstream in(name, std::ios::binary);
    std::string all(static_cast<std::size_t>(2 * kBytes + 9), '\0');
    in.read(all.data(), static_cast<long>(all.size()));
    check(in.gcount() == 2 * kBytes + 8, "the file has another length");
    check(all.compare(0, 4, "head") == 0 && all.compare(static_cast<std::size_t>(2 * kBytes + 4), 4, "tail") == 0,
          "the text is another");
    for (long at = 0; at < 2 * kBytes; ++at) {
        check(all[static_cast<std::size_t>(at + 4)] == of(at % kBytes), "the file has another byte");
    }
}

void read_all(const char* name, char* data, char* reach) {
    std::ifstream in(name, std::ios::binary);
    char text[5] = "";
    check(!!in.read(text, 4) && std::strcmp(text, "head") == 0, "the head is not read");
    for (int turn = 0; turn < 2; ++turn) {
        std::memset(reach, 0, kBytes);
        check(!!in.read(data, kBytes), "an array is not read");
        for (long at = 0; at < kBytes; ++at) check(reach[at] == of(at), "an array has another byte");
    }
    check(!!in.read(text, 4) && std::strcmp(text, "tail") == 0 && in.get() == EOF, "the tail is not read");
}

}  // namespace

int main(int count, char** words) {
    if (count != 3) return 2;
    auto* data = static_cast<char*>(fake_allocate(kBytes, std::strcmp(words[1], "managed") == 0));
    auto* reach = static_cast<char*>(fake_reach(data));
    for (long at = 0; at < kBytes; ++at) reach[at] = of(at);
    write_all(words[2], data);
    check_file(words[2]);
    read_all(words[2], data, reach);
    return 0;
}
