// Products of doubles: tiles on the GPU, and the memory of t.
#include <utility>

#include "hmatrix/gpu/cuda_check.hpp"
#include "hmatrix/gpu/memory.hpp"
#include "hmatrix/gpu/multiplier.hpp"
#include "hmatrix/gpu/tile_plan.hpp"
#include "hmatrix/gpu/tiles.hpp"

namespace penstock::hmatrix::gpu {
namespace {

class DoublesMultiplier final : public Multiplier {
  public:
    DoublesMultiplier(const Context& context, Stream& stream, const MatrixFile& file)
        : context_(context), stream_(stream), unknowns_(file.head().unknowns) {
        check(allow_tiles(), "prepare products");
        TilePlan made = tile_plan(file);
        leaves_ = DeviceArray<TileLeaf>(context_.device(), stream_, made.leaves);
        tiles_ = DeviceArray<Tile>(context_.device(), stream_, made.tiles);
        batches_ = std::move(made.batches);
        t_numbers_ = made.t_numbers;
    }

    void begin(const BatchProduct::Operands& vectors, int) override {
        vectors_ = vectors;
        const std::int64_t numbers = t_numbers_ * vectors.count;
        if (t_.size() < numbers) t_ = DeviceArray<double>(context_.device(), numbers);
        if (numbers > 0) stream_.fill(t_.data(), static_cast<std::uint64_t>(numbers) * sizeof(double), 0);
    }

    void collect(std::int64_t number, const BatchView& view) override {
        const TilePlan::Batch& part = batches_[number];
        const int place = group_.count++;
        group_.batches[place] = {reinterpret_cast<const double*>(view.tiers[0]), leaves_.data() + part.first_leaf,
                                 tiles_.data() + part.first_tile, static_cast<std::int32_t>(part.tiles),
                                 static_cast<std::int32_t>(part.right_tiles)};
        const std::int64_t tiles[2] = {part.tiles, part.right_tiles};
        for (int step = 0; step < 2; ++step) {
            std::int32_t* const ends = group_.blocks_end[step];
            const auto blocks = static_cast<std::int32_t>((tiles[step] + kTileWarps - 1) / kTileWarps);
            ends[place] = blocks + (place > 0 ? ends[place - 1] : 0);
        }
    }

    std::int64_t most_collected() const noexcept override { return kTileBatches; }
    void forget() noexcept override { group_.count = 0; }

    void launch() override {
        for (std::int64_t column = 0; column < vectors_.count; ++column) {
            const TileVectors one{vectors_.x + column * unknowns_, t_.data() + column * t_numbers_,
                                  vectors_.y + column * unknowns_};
            check(launch_tiles(group_, one, static_cast<cudaStream_t>(stream_.native_handle())), "multiply");
        }
        group_.count = 0;
    }

    void end() override {}

  private:
    Context context_;
    Stream& stream_;
    std::int64_t unknowns_;
    std::int64_t t_numbers_ = 0;
    std::vector<TilePlan::Batch> batches_;
    DeviceArray<TileLeaf> leaves_;
    DeviceArray<Tile> tiles_;
    DeviceArray<double> t_;  // of each vector, of leaves that are cut
    BatchProduct::Operands vectors_;
    TileGroup group_{};
};

}  // namespace

std::unique_ptr<Multiplier> multiply_doubles(const Context& context, Stream& stream, const MatrixFile& file) {
    return std::make_unique<DoublesMultiplier>(context, stream, file);
}

}  // namespace penstock::hmatrix::gpu
