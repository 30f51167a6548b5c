// See json_document.hpp.
#include "formats/json/json_document.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "formats/faults.hpp"
#include "formats/json/json_reader.hpp"

namespace penstock::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostDocument = std::uintmax_t{64} << 20;

}  // namespace

void refuse_read(const std::string& path, const std::error_code& error) {
    throw Error(errno_info("read", path, error.value()));
}

std::optional<Value> json_document(const std::string& path, const std::string& dataset) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) return std::nullopt;
    if (error) refuse_read(path, error);
    if (!fs::is_regular_file(status)) throw damaged({path, dataset}, "it is not a regular file");
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error) refuse_read(path, error);
    if (bytes > kMostDocument) {
        throw damaged({path, dataset}, "it has " + std::to_string(bytes) + " bytes; no metadata have more than 64 MiB");
    }
    std::string text(bytes, '\0');
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw Error(errno_info("read", path, EACCES));
    stream.read(text.data(), static_cast<std::streamsize>(bytes));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    try {
        Value found = read_json(text, {.names_of_numbers = true});
        if (found.members() == nullptr) throw BadDocument{"it is not a JSON object"};
        return found;
    } catch (const BadDocument& bad) {
        throw damaged({path, dataset}, "it is not JSON: " + bad.cause);
    }
}

}  // namespace penstock::formats
