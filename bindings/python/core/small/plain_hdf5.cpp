// PlainHdf5: an HDF5 file whose datasets of plain numbers, contiguous or in chunks, are found without the HDF5 library.
//
// A program that opens a file for one row waits for that library most of the time. The parser is that of C and Fortran
// (formats/hdf5). What must stay true: where find() gives a dataset, the library describes it alike; and who may not
// open the file by the library, because another program has it locked, gets None here too.
#include <fcntl.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/hdf5/hdf5_file.hpp"
#include "os/fd.hpp"
#include "penstock/error.hpp"
#include "python/core/core.hpp"
#include "python/shared/gil.hpp"

namespace penstock::python {
namespace {

constexpr std::uint64_t kFirstMetadata = 4 * kKiB;  // where small files have all that is looked at

// The lock is that of HDF5's readers, and is held for as long: a writer that takes locks waits for its turn.
class LockedFile final : public formats::ByteSource {
  public:
    // Throws Error where it cannot be had at once. A pipe of this name does not block.
    explicit LockedFile(std::string name)
        : name_(std::move(name)), fd_(::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (!fd_ || ::flock(fd_.get(), LOCK_SH | LOCK_NB) != 0 || ::fstat(fd_.get(), &status_) != 0 ||
            !S_ISREG(status_.st_mode)) {
            throw Error(ErrorCode::io_error, "open", "it cannot be opened, locked or asked", "use the HDF5 library");
        }
        first_ = fetch(0, std::min(kFirstMetadata, size_bytes()));
    }

    const std::string& name() const override { return name_; }
    std::uint64_t size_bytes() const override { return static_cast<std::uint64_t>(status_.st_size); }
    std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes) const override {
        const std::uint64_t there = offset >= size_bytes() ? 0 : std::min(bytes, size_bytes() - offset);
        if (offset > first_.size() || there > first_.size() - offset) return fetch(offset, there);
        const auto begin = first_.begin() + static_cast<std::ptrdiff_t>(offset);
        return {begin, begin + static_cast<std::ptrdiff_t>(there)};
    }
    const struct stat& status() const noexcept { return status_; }

  private:
    std::vector<std::byte> fetch(std::uint64_t offset, std::uint64_t bytes) const {
        std::vector<std::byte> found(bytes);
        const ssize_t got = ::pread(fd_.get(), found.data(), bytes, static_cast<off_t>(offset));
        if (got < 0 || static_cast<std::uint64_t>(got) != bytes) {
            throw Error(ErrorCode::io_error, "read", "fewer bytes came than the file has", "use the HDF5 library");
        }
        return found;
    }

    std::string name_;
    os::UniqueFd fd_;
    struct stat status_ {};
    std::vector<std::byte> first_;
};

class PlainHdf5 {
  public:
    explicit PlainHdf5(std::unique_ptr<const LockedFile> file)
        : status_(file->status()), container_(formats::open_hdf5(std::move(file))) {}

    // Device, inode, bytes, time of the last change in nanoseconds.
    nb::tuple stamp() const {
        constexpr std::int64_t kNanoseconds = 1'000'000'000;
        return nb::make_tuple(status_.st_dev, status_.st_ino, status_.st_size,
                              status_.st_mtim.tv_sec * kNanoseconds + status_.st_mtim.tv_nsec);
    }

    // (type, shape, fill, offset, chunks) or None. fill: bytes of one element, None where they are zeros. offset: of
    // what is contiguous, else None. chunks: (shape of one, shape that the dataset may grow to, filters) or None.
    nb::object find(const nb::bytes& name) const {
        const std::string path(name.c_str(), name.size());
        std::optional<formats::LaidDataset> found;
        const auto container = container_;  // another thread may close this meanwhile
        if (container == nullptr) return nb::none();
        try {
            const GilReleased release;  // a disk may take long
            found = container->laid_dataset(path);
        } catch (const Error&) {
            return nb::none();
        }
        if (!found || !is_plain(found->stored)) return nb::none();
        const formats::StoredDataset& stored = found->stored;
        const auto is_zero = [](std::byte one) { return one == std::byte{0}; };
        nb::object fill = nb::none(), offset = nb::none(), chunks = nb::none();
        if (!std::all_of(stored.fill.begin(), stored.fill.end(), is_zero)) {
            fill = nb::bytes(stored.fill.data(), stored.fill.size());
        }
        if (found->is_chunked) {
            chunks = chunks_of(*found);
        } else {
            offset = nb::int_(stored.offset_bytes);
        }
        return nb::make_tuple(nb::str(stored.type.name.data(), stored.type.name.size()), tuple_of(stored.grid.shape),
                              fill, offset, chunks);
    }

    // (offset, bytes, filters that it did not go through) of a chunk; None: it is not stored, or damaged.
    nb::object chunk(const nb::bytes& name, const std::vector<std::int64_t>& cell) const {
        const formats::StoredDataset named{.name = std::string(name.c_str(), name.size())};
        std::optional<formats::ChunkPlace> found;
        const auto container = container_;
        if (container == nullptr) return nb::none();
        try {
            const GilReleased release;
            found = container->place(named, cell);
        } catch (const Error&) {
            return nb::none();
        }
        if (!found) return nb::none();
        return nb::make_tuple(found->offset_bytes, found->bytes, found->skipped);
    }

    // Gives the lock back, whoever still holds this. Nothing is found any more.
    void close() noexcept { container_.reset(); }

  private:
    static nb::tuple tuple_of(const std::vector<std::int64_t>& numbers) {
        nb::list made;
        for (const std::int64_t one : numbers) made.append(one);
        return nb::tuple(made);
    }

    static nb::tuple chunks_of(const formats::LaidDataset& found) {
        const std::vector<std::int64_t>& shape = found.stored.grid.shape;
        nb::list most, filters;
        for (const std::optional<std::uint64_t>& one : found.most) {
            most.append(one ? nb::object(nb::int_(*one)) : nb::object(nb::none()));
        }
        for (std::size_t at = found.most.size(); at < shape.size(); ++at) most.append(shape[at]);  // of an array type
        for (const data::Filter& filter : found.stored.filters) {
            nb::list values;
            for (const auto value : filter.values) values.append(value);
            filters.append(nb::make_tuple(nb::str(filter.name.data(), filter.name.size()), nb::tuple(values)));
        }
        return nb::make_tuple(tuple_of(found.stored.grid.chunk_shape), nb::tuple(most), nb::tuple(filters));
    }

    // Numbers that NumPy has, in the order of this machine.
    static bool is_plain(const formats::StoredDataset& dataset) {
        return std::string_view("biufc").find(dataset.type.kind) != std::string_view::npos &&
               !dataset.type.is_foreign_order;
    }

    struct stat status_ {};
    std::shared_ptr<const formats::Hdf5Container> container_;  // guarded by the GIL; null: closed
};

// None: HDF5 has to open it, or to say why it cannot.
std::unique_ptr<PlainHdf5> open_plain_hdf5(nb::handle path) {
    const std::string name = file_name(path, "open");
    try {
        const GilReleased release;
        return std::make_unique<PlainHdf5>(std::make_unique<const LockedFile>(name));
    } catch (const Error&) {
        return nullptr;
    }
}

}  // namespace

void bind_plain_hdf5(nb::module_& module) {
    nb::class_<PlainHdf5>(module, "PlainHdf5")
        .def("stamp", &PlainHdf5::stamp)
        .def("find", &PlainHdf5::find, nb::arg("name"))
        .def("chunk", &PlainHdf5::chunk, nb::arg("name"), nb::arg("cell"))
        .def("close", &PlainHdf5::close);
    module.def("open_plain_hdf5", &open_plain_hdf5, nb::arg("name").none());
}

}  // namespace penstock::python
