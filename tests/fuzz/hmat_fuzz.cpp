// Any bytes as a .hmat file. Either the reader refuses it with an Error that names the file, or it gives a matrix whose
// products stay within their memory, whatever numbers its batches contain.
//
// Most cases are a small valid file with some bytes changed and the checksums corrected, as a faulty program would
// write it. The others are the input itself.
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "hmatrix/assemble/small_problem_rig.hpp"
#include "hmatrix/multiply/host_product.hpp"
#include "hmatrix/multiply/source/cached_source.hpp"
#include "hmatrix/multiply/stored_matrix.hpp"
#include "input.hpp"
#include "penstock/checksum.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

std::string small_file(const Context& context, Workers& workers, Encoding encoding) {
    const fuzz::Folder folder;
    AssembleOptions options;
    options.eps = 1e-3;
    options.batches = 3;
    options.leaf_size = 4;
    options.encoding = encoding;
    const SmallProblem given(40);
    assemble(context, workers, given.problem(), folder / "a.hmat", options);
    std::ifstream stream(folder / "a.hmat", std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void reseal(std::string& bytes) {
    FileHeader head;
    if (bytes.size() < sizeof head) return;
    std::memcpy(&head, bytes.data(), sizeof head);
    const auto all = std::as_bytes(std::span(bytes));
    const auto from = static_cast<std::uint64_t>(head.leaf_table_offset);
    if (from < bytes.size()) head.tables_checksum = checksum(ChecksumKind::crc32, all.subspan(from));
    std::memcpy(bytes.data(), &head, sizeof head);
    head.header_checksum = checksum(ChecksumKind::crc32, all.first(offsetof(FileHeader, header_checksum)));
    std::memcpy(bytes.data(), &head, sizeof head);
}

void change(fuzz::Input& input, std::string& bytes) {
    FileHeader head;
    std::memcpy(&head, bytes.data(), sizeof head);
    for (std::uint64_t left = input.between(0, 6); left > 0; --left) {
        const bool in_header = input.coin();
        const auto low = in_header ? 0 : static_cast<std::uint64_t>(head.leaf_table_offset);
        const std::uint64_t at = input.between(low, in_header ? sizeof head - 1 : bytes.size() - 1);
        if (input.coin()) {
            bytes[at] = static_cast<char>(input.number<std::uint8_t>());
            continue;
        }
        const std::uint64_t word = at / 8 * 8;
        std::int64_t value = input.number<std::int64_t>();
        if (input.coin()) value %= 64;  // near valid values
        if (word + 8 <= bytes.size()) std::memcpy(bytes.data() + word, &value, sizeof value);
    }
    if (input.between(0, 7) == 0) bytes.resize(input.between(0, 2 * bytes.size()));
}

// A file in memory, with a name that can be opened.
class MemoryFile {
  public:
    explicit MemoryFile(const std::string& bytes) : fd_(::memfd_create("fuzz", 0)) {
        std::size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t wrote = ::write(fd_, bytes.data() + done, bytes.size() - done);
            fuzz::promise(wrote > 0, "a file in memory can be written");
            done += static_cast<std::size_t>(wrote);
        }
    }
    ~MemoryFile() { ::close(fd_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string name() const { return "/proc/self/fd/" + std::to_string(fd_); }

  private:
    int fd_;
};

struct Rig {
    Context context = host_context();
    Workers workers{1};
    std::string tiers = small_file(context, workers, Encoding::tiers);
    std::string fp64 = small_file(context, workers, Encoding::fp64);
};

void try_file(Rig& rig, const std::string& bytes, fuzz::Input& input) {
    const MemoryFile memory(bytes);
    try {
        const MatrixFile file = MatrixFile::open(rig.context, rig.workers, memory.name());
        const FileHeader& head = file.head();
        fuzz::promise(head.unknowns > 0 && head.unknowns <= static_cast<std::int64_t>(bytes.size()), "unknowns");
        CacheOptions options;
        options.verify = input.coin() ? Verify::never : Verify::first;
        options.pinned_tiers = static_cast<int>(input.between(0, 3));
        if (input.coin()) options.cache_bytes = 1 << 20;
        CachedSource source(rig.context, rig.workers, file, options);
        HostProduct product(file, rig.workers);
        StoredMatrix matrix(file, source, product, {static_cast<int>(input.between(0, 6)), input.coin()});
        const std::vector<double> x(head.unknowns, 1.0);
        std::vector<double> y(head.unknowns);
        for (int sweep = 0; sweep < 2; ++sweep) matrix.apply(x.data(), y.data(), 1, input.coin() ? 0 : 1e-2);
    } catch (const Error& error) {
        fuzz::promise(!error.info().cause.empty(), "an error has a cause");
        fuzz::promise(error.code() != ErrorCode::internal, "a damaged file is not our mistake");
    }
}

}  // namespace
}  // namespace penstock::hmatrix

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    static penstock::hmatrix::Rig rig;
    penstock::fuzz::Input input(data, bytes);
    std::string file = input.coin() ? rig.tiers : rig.fp64;
    if (input.between(0, 15) == 0) {
        file = input.rest();
    } else {
        penstock::hmatrix::change(input, file);
    }
    if (input.between(0, 15) != 0) penstock::hmatrix::reseal(file);
    penstock::hmatrix::try_file(rig, file, input);
    return 0;
}
