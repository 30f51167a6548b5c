// See checkpoint.hpp.
//
// Header, all little-endian: 0 magic, 8 version (u32), 12 method (u32), 16 unknowns (i64), 24 columns (i64), 32
// iterations (i64), 40 sweeps (i64), 48 relative residual (f64), 56 matrix (u64), 64 checksum of b (u32), 68 checksum
// of x (u32), 72 id of the log of products (u64, 0 for none), 80 bytes of the log (u64), 88 zeros (4 bytes), 92
// checksum of bytes 0 to 91 (u32). Checksums are CRC-32. From 96: x, unknowns * columns doubles, column-major, to the
// end of the file.
#include "hmatrix/solve/continued/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "hmatrix/solve/continued/state_bytes.hpp"
#include "penstock/error.hpp"

namespace penstock::hmatrix {
namespace {

constexpr std::array<char, 8> kMagic{'P', 'S', 'H', 'M', 'S', 'O', 'L', 'V'};
constexpr std::uint32_t kVersion = 2;
constexpr std::uint64_t kHeaderBytes = 96;
constexpr std::uint64_t kHeaderSum = 92;
const char* const kStartAfresh = "start the solve afresh";

using Header = std::array<std::byte, kHeaderBytes>;

Header header_of(const SolverState& state) {
    Header header{};
    put(header, 0, kMagic);
    put(header, 8, kVersion);
    put(header, 12, static_cast<std::uint32_t>(state.method));
    put(header, 16, state.problem.unknowns);
    put(header, 24, state.problem.columns);
    put(header, 32, state.progress.iteration);
    put(header, 40, state.progress.sweeps);
    put(header, 48, state.progress.relative_residual);
    put(header, 56, state.problem.matrix);
    put(header, 64, state.problem.right_hand_side);
    put(header, 68, checksum_of(state.x));
    put(header, 72, state.products.id);
    put(header, 80, state.products.bytes);
    put(header, kHeaderSum, sum_of(std::span(header).first(kHeaderSum)));
    return header;
}

SolverState state_of(const Header& header) {
    SolverState state;
    state.method = static_cast<Method>(get<std::uint32_t>(header, 12));
    state.problem = {.unknowns = get<std::int64_t>(header, 16), .columns = get<std::int64_t>(header, 24),
                     .right_hand_side = get<std::uint32_t>(header, 64), .matrix = get<std::uint64_t>(header, 56)};
    state.progress = {.iteration = get<std::int64_t>(header, 32), .sweeps = get<std::int64_t>(header, 40),
                      .relative_residual = get<double>(header, 48)};
    state.products = {.id = get<std::uint64_t>(header, 72), .bytes = get<std::uint64_t>(header, 80)};
    return state;
}

constexpr const char* kOperation = "read the checkpoint";

[[noreturn]] void refuse(const std::string& file, const std::string& cause, const std::string& advice = kStartAfresh) {
    refuse(StateFile{kOperation, file}, cause, advice);
}

void require_done(const Outcome& outcome, std::uint64_t bytes, const std::string& file) {
    require_whole(outcome, bytes, {kOperation, file});
}

void check_header(const Header& header, const std::string& file) {
    if (get<std::array<char, 8>>(header, 0) != kMagic) refuse(file, "this is not a checkpoint of a solver");
    const auto version = get<std::uint32_t>(header, 8);
    if (version != kVersion) {
        refuse(file, "the checkpoint is of version " + std::to_string(version) + ", this program reads version " +
                         std::to_string(kVersion));
    }
    if (get<std::uint32_t>(header, kHeaderSum) != sum_of(std::span(header).first(kHeaderSum))) {
        refuse(file, "the checkpoint's header is corrupted: its checksum is wrong");
    }
    const auto method = get<std::uint32_t>(header, 12);
    if (method > static_cast<std::uint32_t>(Method::idr)) {
        refuse(file, "the checkpoint names method number " + std::to_string(method) + ", which does not exist");
    }
}

void check_problem(const Problem& found, const Problem& expected, const std::string& file) {
    const std::string other = "the checkpoint is of another problem: ";
    const auto differ = [&](const char* what, auto is, auto should) {
        if (is == should) return;
        refuse(file, other + "it has " + std::to_string(is) + " " + what + ", this one " + std::to_string(should),
               "give its own problem, or start afresh");
    };
    differ("unknowns", found.unknowns, expected.unknowns);
    differ("right-hand sides", found.columns, expected.columns);
    if (found.right_hand_side != expected.right_hand_side) refuse(file, other + "its right-hand side differs");
    if (found.matrix != expected.matrix) refuse(file, other + "its matrix differs");
}

}  // namespace

std::uint32_t checksum_of(std::span<const double> b) { return sum_of(std::as_bytes(b)); }

void write_checkpoint(const Context& context, const std::string& file, const SolverState& state) {
    const auto numbers = static_cast<std::int64_t>(state.x.size());
    if (numbers == 0 || numbers != state.problem.unknowns * state.problem.columns) {
        throw Error(ErrorCode::invalid_argument, "write the checkpoint",
                    "x holds " + std::to_string(numbers) + " numbers, the problem has " +
                        std::to_string(state.problem.unknowns) + " unknowns and " +
                        std::to_string(state.problem.columns) + " right-hand sides");
    }
    const Header header = header_of(state);
    std::vector<std::byte> content(kHeaderBytes + state.x.size() * sizeof(double));
    std::copy(header.begin(), header.end(), content.begin());
    std::memcpy(content.data() + kHeaderBytes, state.x.data(), state.x.size() * sizeof(double));
    File made = context.open(file, {.mode = OpenMode::create, .size_bytes = content.size(), .durable = true});
    require_done(made.write(view_of(content.data(), content.size())), content.size(), file);
    made.close();
}

SolverState read_checkpoint(const Context& context, const std::string& file, const Problem& expected) {
    const File stored = context.open(file);
    const std::uint64_t bytes = stored.size_bytes();
    if (bytes < kHeaderBytes) refuse(file, "the checkpoint is cut off: it has " + std::to_string(bytes) + " bytes");
    Header header{};
    require_done(stored.read(view_of(header.data(), kHeaderBytes)), kHeaderBytes, file);
    check_header(header, file);
    SolverState state = state_of(header);
    check_problem(state.problem, expected, file);
    const std::uint64_t body = bytes - kHeaderBytes;
    const auto numbers = static_cast<std::uint64_t>(expected.unknowns) * static_cast<std::uint64_t>(expected.columns);
    if (body != numbers * sizeof(double)) {
        refuse(file, "the checkpoint is torn: " + std::to_string(numbers) + " numbers should follow its header, " +
                         std::to_string(body) + " bytes do");
    }
    state.x.resize(numbers);
    require_done(stored.read(view_of(state.x.data(), body), kHeaderBytes), body, file);
    if (checksum_of(state.x) != get<std::uint32_t>(header, 68)) {
        refuse(file, "the checkpoint's solution is corrupted: its checksum is wrong");
    }
    const auto finite = [](double value) { return std::isfinite(value); };
    if (std::all_of(state.x.begin(), state.x.end(), finite)) return state;
    refuse(file, "the checkpoint's solution holds a number that is not finite");
}

}  // namespace penstock::hmatrix
