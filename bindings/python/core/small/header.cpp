// read_header: what the header of a small format says, where its first bytes tell all; find_begin: where one begins.
//
// A program that opens a file for one row waits for this and for little else. The parsers are those of C and Fortran.
// What must stay true: where the answer is not None, the parsers of Python give the same. They tell all errors, and
// know the types that devices do not compute with.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "formats/json/value.hpp"
#include "formats/parsers.hpp"
#include "formats/safetensors/plain_header.hpp"
#include "os/fd.hpp"
#include "python/core/core.hpp"
#include "python/shared/gil.hpp"

namespace penstock::python {
namespace {

constexpr std::uint64_t kFirstBytes = 1024;
constexpr std::size_t kMostBegin = 16;  // of a format
constexpr std::uint64_t kMostHeaderBytes = 64 * kKiB;  // longer ones take so long that Python may read them
constexpr std::uint64_t kMostPlainBytes = 16 * kMiB;  // of one that is read in a pass: it has 100,000 tensors

// A header that is longer, or a file that is none: left to Python.
struct NotHere {};

class FirstBytes final : public formats::ByteSource {
  public:
    // A pipe of this name does not block.
    explicit FirstBytes(const std::string& name)
        : name_(name), fd_(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (!fd_ || ::fstat(fd_.get(), &status_) != 0 || !S_ISREG(status_.st_mode) || size_bytes() == 0) {
            throw NotHere{};
        }
        extend(kFirstBytes);
    }
    const std::string& name() const override { return name_; }
    std::uint64_t size_bytes() const override { return static_cast<std::uint64_t>(status_.st_size); }
    std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const override {
        const std::uint64_t wanted = offset >= size_bytes() ? 0 : std::min(bytes, size_bytes() - offset);
        if (wanted > kMostHeaderBytes || offset > kMostHeaderBytes - wanted) throw NotHere{};
        if (wanted != 0) extend(offset + wanted);
        const auto* const first = begin_.data() + (wanted == 0 ? 0 : offset);
        return {first, first + wanted};
    }
    // Requires: they are in the file.
    std::string_view first(std::uint64_t bytes) const {
        extend(bytes);
        return text().substr(0, bytes);
    }
    const struct stat& status() const noexcept { return status_; }
    std::string_view text() const { return {reinterpret_cast<const char*>(begin_.data()), begin_.size()}; }

  private:
    void extend(std::uint64_t end) const {
        const std::size_t there = begin_.size(), wanted = std::min(end, size_bytes());
        if (wanted <= there) return;
        begin_.resize(wanted);
        const GilReleased release;  // a disk may take long
        const ssize_t got = ::pread(fd_.get(), begin_.data() + there, wanted - there, static_cast<off_t>(there));
        if (got < 0 || static_cast<std::size_t>(got) != wanted - there) throw NotHere{};
    }

    const std::string& name_;
    os::UniqueFd fd_;
    struct stat status_ {};
    mutable std::vector<std::byte> begin_;
};

// Bytes that lie as they are, in C order.
bool is_plain(const formats::StoredDataset& dataset) {
    const formats::ElementType& type = dataset.type;
    return dataset.refusal.empty() && dataset.filters.empty() && !type.is_foreign_order &&
           std::string_view("biufcE").find(type.kind) != std::string_view::npos &&
           dataset.grid.strides == data::c_strides(dataset.grid.shape, type.item_bytes);
}

std::vector<formats::StoredDataset> parsed(const FirstBytes& source, std::string_view format) {
    if (format == "safetensors") return formats::parse_safetensors(source);
    if (format != "npy") throw NotHere{};
    std::vector<formats::StoredDataset> found = formats::parse_npy(source);
    // Python tells Fortran's order of arrays that lie alike in both.
    const std::string_view header = source.text().substr(0, found.front().offset_bytes);
    if (header.find("True") != std::string_view::npos) throw NotHere{};
    return found;
}

nb::tuple tuple_of(std::span<const std::int64_t> numbers) {
    const nb::tuple made = nb::steal<nb::tuple>(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
    for (std::size_t at = 0; at < numbers.size(); ++at) {
        PyTuple_SET_ITEM(made.ptr(), static_cast<Py_ssize_t>(at), PyLong_FromLongLong(numbers[at]));
    }
    return made;
}

// What only Python parses: all of the header, where it has attributes.
std::string_view attributes_in(std::string_view text) {
    return text.find("\"__metadata__\"") == std::string_view::npos ? std::string_view{} : text;
}

// {name: (type, shape, offset)} of a header that is read in one pass, without a tree of it; nothing of others.
std::optional<nb::dict> plain_tensors(const FirstBytes& source) {
    std::uint64_t bytes = 0;
    if (source.text().size() < sizeof bytes) return std::nullopt;
    for (std::size_t at = sizeof bytes; at-- > 0;) bytes = bytes << 8 | static_cast<unsigned char>(source.text()[at]);
    if (bytes > kMostPlainBytes || bytes > source.size_bytes() - sizeof bytes) return std::nullopt;
    const std::uint64_t begin = sizeof bytes + bytes;
    const std::string_view header = source.first(begin).substr(sizeof bytes);
    formats::PlainHeader found;
    if (!found.read(header, source.size_bytes() - begin)) return std::nullopt;
    nb::dict placed;
    std::map<const char*, nb::str> types;  // most files have one or two
    for (const formats::PlainTensor& one : found.tensors()) {
        const auto type = types.try_emplace(one.type, one.type).first->second;
        placed[nb::str(one.name.data(), one.name.size())] =
            nb::make_tuple(type, tuple_of(found.shape(one)), begin + one.first);
    }
    if (placed.size() != found.tensors().size()) return std::nullopt;  // a name is there twice
    return placed;
}

nb::dict placed_datasets(const FirstBytes& source, const std::string& format) {
    if (format == "safetensors") {
        if (const auto placed = plain_tensors(source)) return *placed;
    }
    nb::dict placed;
    for (const formats::StoredDataset& one : parsed(source, format)) {
        if (!is_plain(one)) throw NotHere{};
        placed[nb::str(one.name.data(), one.name.size())] =
            nb::make_tuple(nb::str(one.type.name.data(), one.type.name.size()), tuple_of(one.grid.shape),
                           one.offset_bytes);
    }
    return placed;
}

// None, or (device, inode, first bytes that have attributes, {name: (type, shape, offset)}).
nb::object read_header(const std::string& format, nb::handle path) {
    const std::string name = file_name(path, "open");
    try {
        const FirstBytes source(name);
        const nb::dict placed = placed_datasets(source, format);
        const std::string_view text = attributes_in(source.text());
        return nb::make_tuple(source.status().st_dev, source.status().st_ino, nb::bytes(text.data(), text.size()),
                              placed);
    } catch (const NotHere&) {
    } catch (const Error&) {
    } catch (const formats::BadDocument&) {
    }
    return nb::none();
}

// The bytes there, fewer where the file ends before. Raises OSError of the system. Other threads of Python run
// meanwhile: a disk may take long.
std::string_view read_few(int descriptor, std::uint64_t offset, std::span<char> into) {
    std::size_t there = 0;
    while (there < into.size()) {
        const auto at = static_cast<off_t>(offset + there);
        const auto [got, failure] = [&] {
            const GilReleased release;
            const ssize_t read = ::pread(descriptor, into.data() + there, into.size() - there, at);
            return std::pair(read, read < 0 ? errno : 0);
        }();
        if (failure == EINTR) continue;
        if (got < 0) {
            errno = failure;
            PyErr_SetFromErrno(PyExc_OSError);
            throw nb::python_error();
        }
        if (got == 0) break;
        there += static_cast<std::size_t>(got);
    }
    return {into.data(), there};
}

// The first of the places, which ascend, before `end` where one of the beginnings stands; `end`: there is none.
// Requires: no beginning is longer than kMostBegin.
std::uint64_t find_begin(int descriptor, const std::vector<nb::bytes>& begins, const std::vector<std::uint64_t>& starts,
                         std::uint64_t end) {
    std::array<char, kMostBegin> room{};
    for (const std::uint64_t start : starts) {
        if (start >= end) break;
        const std::string_view there = read_few(descriptor, start, room);
        const auto stands = [&](const nb::bytes& one) { return there.starts_with({one.c_str(), one.size()}); };
        if (std::any_of(begins.begin(), begins.end(), stands)) return start;
    }
    return end;
}

}  // namespace

void bind_header(nb::module_& module) {
    module.def("read_header", &read_header, nb::arg("format"), nb::arg("name").none());
    module.def("find_begin", &find_begin, nb::arg("descriptor"), nb::arg("begins"), nb::arg("starts"), nb::arg("end"));
}

}  // namespace penstock::python
