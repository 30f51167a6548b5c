// A stored matrix of a small problem, for tests of the code that reads it: its file, its bytes, and its product from
// decoded numbers.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "context/test_files.hpp"
#include "hmatrix/assemble/small_problem_rig.hpp"
#include "hmatrix/file/reader.hpp"
#include "hmatrix/multiply/source/source.hpp"

namespace penstock::hmatrix {

struct StoredRig {
    explicit StoredRig(Encoding encoding, std::int64_t unknowns = 300, std::int64_t batches = 9, double eps = 1e-4)
        : given(unknowns) {
        AssembleOptions options;
        options.eps = eps;
        options.encoding = encoding;
        options.batches = batches;
        assemble(context, workers, given.problem(), name, options);
        bytes = test::read_file(name);
    }
    MatrixFile open() { return MatrixFile::open(context, workers, name); }

    // Whether the first `tiers` tiers of the view equal the file's bytes.
    bool holds(const BatchView& view, const BatchRecord& record, int tiers) const {
        for (int tier = 0; tier < tiers; ++tier) {
            if (record.tier_bytes[tier] == 0) continue;
            const unsigned char* at = bytes.data() + record.offset + record.tier_begin[tier];
            if (std::memcmp(view.tiers[tier], at, record.tier_bytes[tier]) != 0) return false;
        }
        return true;
    }

    // The product of the first `tiers` tiers with x, in the order of the cluster tree, from decoded leaves.
    std::vector<double> product(const MatrixFile& file, const std::vector<double>& x, int tiers) const {
        std::vector<double> y(x.size());
        for (const BatchRecord& batch : file.tables().batches) {
            for (std::int64_t i = batch.first_leaf; i < batch.first_leaf + batch.leaves; ++i) {
                const LeafPlace& place = file.tables().leaves[i];
                const Factors leaf = numbers(file, batch, place, tiers);
                for (std::int64_t column = 0; column < leaf.columns; ++column) {
                    for (std::int64_t row = 0; row < leaf.rows; ++row) {
                        double entry = leaf.low_rank ? 0 : leaf.u[column * leaf.rows + row];
                        for (std::int64_t k = 0; k < leaf.rank; ++k) {
                            entry += leaf.u[k * leaf.rows + row] * leaf.v[k * leaf.columns + column];
                        }
                        y[place.row + row] += entry * x[place.column + column];
                    }
                }
            }
        }
        return y;
    }

    test::TempDirectory directory;
    std::string name = directory.file("a.hmat");
    Context context = host_context();
    Workers workers{2};
    SmallProblem given;
    std::vector<unsigned char> bytes;  // the whole file

  private:
    Factors numbers(const MatrixFile& file, const BatchRecord& batch, const LeafPlace& place, int tiers) const {
        const auto* begin = reinterpret_cast<const std::byte*>(bytes.data()) + batch.offset;
        if (file.encoding() == Encoding::tiers) {
            std::vector<std::span<const std::byte>> parts;
            for (int tier = 0; tier < tiers; ++tier) {
                const auto* at = begin + batch.tier_begin[tier] + place.tier_offset[tier];
                parts.emplace_back(at, place.shape.tier_bytes(tier));
            }
            return decode(place.shape, parts);
        }
        const std::int64_t rank = place.shape.low_rank ? place.shape.counts[0][0] : 0;
        Factors made{place.shape.rows, place.shape.columns, rank, place.shape.low_rank, {}, {}};
        made.v.resize(rank * made.columns);
        made.u.resize(made.low_rank ? rank * made.rows : made.rows * made.columns);
        const auto* at = begin + batch.tier_begin[0] + place.tier_offset[0];
        if (rank > 0) std::memcpy(made.v.data(), at, 8 * made.v.size());
        if (!made.u.empty()) std::memcpy(made.u.data(), at + 8 * made.v.size(), 8 * made.u.size());
        return made;
    }
};

}  // namespace penstock::hmatrix
