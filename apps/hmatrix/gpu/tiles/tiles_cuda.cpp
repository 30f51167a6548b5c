// Products with tiles on the GPU, for doubles and for digits. Holds their tables and the memory of t on the GPU.
#include <algorithm>
#include <iterator>
#include <utility>

#include "cuda_check.hpp"
#include "hmatrix/gpu/digits/digit_plan.hpp"
#include "hmatrix/gpu/kernels.hpp"
#include "hmatrix/gpu/memory.hpp"
#include "hmatrix/gpu/multiplier.hpp"
#include "hmatrix/gpu/tiles/tile_plan.hpp"
#include "hmatrix/gpu/tiles/tiles.hpp"
#include "hmatrix/text.hpp"

namespace penstock::hmatrix::gpu {
namespace {

constexpr double kSinglePrecision = 2e-7;  // the rounding of sums would hide accuracies below this

// The part that both encodings share. BatchOf and Plan are the types of one encoding.
template <class BatchOf, class Plan>
class TileMultiplier : public Multiplier {
  public:
    using Real = typename BatchOf::Real;

    TileMultiplier(const Context& context, Stream& stream, std::int64_t unknowns, Plan made)
        : context_(context), stream_(stream), unknowns_(unknowns), batches_(std::move(made.batches)) {
        apps::check_cuda(allow_tiles(overlap_), "prepare products");
        rows_ = Array(context_.device(), stream_, made.rows);
        tiles_ = DeviceArray<Tile>(context_.device(), stream_, made.tiles);
        t_numbers_ = made.t_numbers;
    }

    std::int64_t most_collected() const noexcept override { return kTileBatches; }
    void forget() noexcept override { group_.count = 0; }

    void launch() override {
        for (std::int64_t column = 0; column < vectors_.count; ++column) {
            const TileVectors<Real> one{x() + column * unknowns_, t_.data() + column * t_numbers_,
                                        vectors_.y + column * unknowns_};
            apps::check_cuda(launch_tiles(group_, one, {stream(), overlap_, behind_}), "multiply");
            behind_ = true;
        }
        group_.count = 0;
    }

  protected:
    void clear_t(const BatchProduct::Operands& vectors) {
        vectors_ = vectors;
        behind_ = false;
        const std::int64_t numbers = t_numbers_ * vectors.count;
        if (t_.size() < numbers) t_ = DeviceArray<Real>(context_.device(), numbers);
        if (numbers > 0) stream_.fill(t_.data(), static_cast<std::uint64_t>(numbers) * sizeof(Real), 0);
    }

    // Adds a batch to the group. Sets everything except the addresses of its bytes.
    BatchOf& next(std::int64_t number) {
        const typename Plan::Batch& part = batches_[number];
        const int place = group_.count++;
        BatchOf& batch = group_.batches[place];
        rows_of(batch) = rows_.data() + part.first_row;
        batch.tiles = tiles_.data() + part.first_tile;
        batch.count = static_cast<std::int32_t>(part.tiles);
        batch.right_count = static_cast<std::int32_t>(part.right_tiles);
        const std::int64_t tiles[2] = {part.tiles, part.right_tiles};
        for (int step = 0; step < 2; ++step) {
            std::int32_t* const ends = group_.blocks_end[step];
            const auto blocks = static_cast<std::int32_t>((tiles[step] + kTileWarps - 1) / kTileWarps);
            ends[place] = blocks + (place > 0 ? ends[place - 1] : 0);
        }
        return batch;
    }

    virtual const Real* x() const noexcept = 0;
    cudaStream_t stream() const noexcept { return static_cast<cudaStream_t>(stream_.native_handle()); }

    Context context_;
    Stream& stream_;
    std::int64_t unknowns_;
    BatchProduct::Operands vectors_;

  private:
    using Array = DeviceArray<typename decltype(Plan::rows)::value_type>;
    using Tile = typename decltype(Plan::tiles)::value_type;
    static const TileLeaf*& rows_of(TileBatch& batch) { return batch.leaves; }
    static const std::uint64_t*& rows_of(DigitBatch& batch) { return batch.table; }

    bool overlap_ = false;
    bool behind_ = false;  // whether this product has launched before
    std::int64_t t_numbers_ = 0;
    std::vector<typename Plan::Batch> batches_;
    Array rows_;
    DeviceArray<Tile> tiles_;
    DeviceArray<Real> t_;  // for each vector: t of the leaves that are cut
    TileGroup<BatchOf> group_{};
};

class DoublesMultiplier final : public TileMultiplier<TileBatch, TilePlan> {
  public:
    DoublesMultiplier(const Context& context, Stream& stream, const MatrixFile& file)
        : TileMultiplier(context, stream, file.head().unknowns, tile_plan(file)) {}

    void begin(const BatchProduct::Operands& vectors, int) override { clear_t(vectors); }
    void collect(std::int64_t number, const BatchView& view) override {
        next(number).numbers = reinterpret_cast<const double*>(view.tiers[0]);
    }
    void end() override {}

  private:
    const double* x() const noexcept override { return vectors_.x; }
};

// In single precision. Vectors are divided by a power of two at the beginning, and results are multiplied by it at the
// end.
class DigitsMultiplier final : public TileMultiplier<DigitBatch, DigitPlan> {
  public:
    DigitsMultiplier(const Context& context, Stream& stream, const MatrixFile& file)
        : TileMultiplier(context, stream, file.head().unknowns, digit_plan(file)) {}

    void begin(const BatchProduct::Operands& vectors, int tiers) override {
        clear_t(vectors);
        tiers_ = tiers;
        const std::int64_t values = unknowns_ * vectors.count;
        if (single_x_.size() < values) {
            single_x_ = DeviceArray<float>(context_.device(), values);
            largest_ = DeviceArray<unsigned long long>(context_.device(), vectors.count);
        }
        apps::check_cuda(launch_to_single(scaled(), stream()), "round a vector");
    }

    void collect(std::int64_t number, const BatchView& view) override {
        DigitBatch& batch = next(number);
        std::transform(std::begin(view.tiers), std::end(view.tiers), batch.tiers,
                       [](const std::byte* tier) { return reinterpret_cast<const std::uint32_t*>(tier); });
        batch.tiers_used = tiers_;
    }

    void end() override { apps::check_cuda(launch_scale_back(scaled(), vectors_.y, stream()), "scale a product"); }

  private:
    const float* x() const noexcept override { return single_x_.data(); }
    Scaled scaled() const noexcept {
        return {vectors_.x, single_x_.data(), unknowns_, vectors_.count, largest_.data()};
    }

    DeviceArray<float> single_x_;
    DeviceArray<unsigned long long> largest_;  // one for each column of single_x_
    int tiers_ = 0;
};

}  // namespace

std::unique_ptr<Multiplier> multiply_doubles(const Context& context, Stream& stream, const MatrixFile& file) {
    return std::make_unique<DoublesMultiplier>(context, stream, file);
}

std::unique_ptr<Multiplier> multiply_digits(const Context& context, Stream& stream, const MatrixFile& file) {
    const double finest = file.head().accuracies[file.tiers() - 1];
    if (finest < kSinglePrecision) {
        throw Error(ErrorCode::unsupported, "multiply on a GPU",
                    "tiers of accuracy " + text_of(finest) + " are finer than the kernels' single precision",
                    "store the matrix as fp64, or multiply on the host");
    }
    return std::make_unique<DigitsMultiplier>(context, stream, file);
}

}  // namespace penstock::hmatrix::gpu
