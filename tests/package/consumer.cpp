// A program that uses only the installed C++ headers and a library, static or shared: it reads a file through it.
#include <array>
#include <cstdio>
#include <penstock/context.hpp>
#include <penstock/history.hpp>
#include <penstock/survey.hpp>
#include <string>

int main(int count, char** arguments) {
    if (count < 2) return 1;
    try {
        const penstock::Context context({.device = "host"});
        const auto file = context.open(arguments[1]);
        const auto buffer = context.allocate(file.size_bytes());
        const auto outcome = file.read(buffer.view());
        outcome.or_throw();
        std::array<char, 2> start{};
        context.copy_to_host(start.data(), buffer.data(), start.size());
        std::printf("%s\n", outcome.evidence.to_json().c_str());
        // One that never begins makes no file: it needs all libraries that a history may call.
        const penstock::History unused(context, std::string(arguments[1]) + ".nc", {.format = "netcdf4"});
        const bool surveyed = penstock::survey_json(arguments[1]).front() == '{';
        return surveyed && outcome.bytes == file.size_bytes() && start[0] == '/' ? 0 : 1;
    } catch (const penstock::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
