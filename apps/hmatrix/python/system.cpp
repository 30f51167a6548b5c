// Assembly, products and solves in Python.
#include <optional>

#include "hmatrix/file/reader.hpp"
#include "hmatrix/gpu/functor_on_gpu.hpp"
#include "hmatrix/kernel/problem.hpp"
#include "hmatrix/python/options.hpp"
#include "hmatrix/solve/continued/continued.hpp"

namespace penstock::python {
namespace {

// Tells the user's function how far the work is. Returns false if that function asks for an end. What Python raises
// passes through the work, which cleans up, to the caller. Requires: the calling thread holds no GIL.
template <class... Arguments>
bool told(nb::handle function, Arguments... arguments) {
    const GilHeld acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (function.is_none()) return true;
    const nb::object answer = in_python([&] { return nb::object(function(arguments...)); });
    return !answer.is(nb::handle(Py_False));
}

// Entries that the user's Python function computes: it takes two arrays of numbers of points and returns a 2-D array.
// The thread that assembles calls it for one row or column of a block at a time.
class PythonEntries final : public hmatrix::Entries {
  public:
    explicit PythonEntries(nb::object function) : function_(std::move(function)) {}
    ~PythonEntries() override {
        const GilHeld acquire;
        function_.reset();
    }
    void row(std::int64_t row, std::span<const std::int64_t> columns, double* out) const override {
        ask({&row, 1}, columns, out);
    }
    void column(std::span<const std::int64_t> rows, std::int64_t column, double* out) const override {
        ask(rows, {&column, 1}, out);
    }

  private:
    void ask(std::span<const std::int64_t> rows, std::span<const std::int64_t> columns, double* out) const {
        const GilHeld acquire;
        const nb::object answer = in_python([&] { return nb::object(function_(numbers(rows), numbers(columns))); });
        Doubles values;
        if (!nb::try_cast<Doubles>(answer, values) || values.size() != rows.size() * columns.size()) {
            PyErr_Clear();
            throw nb::type_error("entries(rows, columns) must return a C-contiguous float64 array of that shape");
        }
        std::copy_n(values.data(), values.size(), out);
    }
    static nb::object numbers(std::span<const std::int64_t> from) {
        return nb::cast(to_numpy(std::vector<std::int64_t>(from.begin(), from.end()), {from.size()}));
    }
    nb::object function_;
};

nb::dict head_to_dict(const hmatrix::FileHeader& head) {
    nb::dict fields;
    fields["unknowns"] = head.unknowns;
    fields["leaves"] = head.leaves;
    fields["low_rank_leaves"] = head.low_rank_leaves;
    fields["dense_leaves"] = head.leaves - head.low_rank_leaves;
    fields["rank_sum"] = head.rank_sum;
    fields["batches"] = head.batches;
    fields["bytes_fp64"] = head.fp64_bytes;
    fields["bytes_stored"] = head.file_bytes;
    fields["encoding"] = head.encoding == static_cast<std::uint32_t>(hmatrix::Encoding::tiers) ? "tiers" : "fp64";
    fields["accuracies"] = std::vector<double>(head.accuracies, head.accuracies + head.tiers);
    fields["eps"] = head.eps;
    fields["eta"] = head.eta;
    fields["leaf_size"] = head.leaf_size;
    fields["sampled_error"] = head.sampled_error;
    return fields;
}

nb::dict assembled_to_dict(const hmatrix::Assembled& made) {
    nb::dict fields = head_to_dict(made.head);
    fields["entries_evaluated"] = made.evaluated;
    fields["repairs"] = made.repairs;
    fields["full_rank_leaves"] = made.full_rank;
    fields["assembled_on"] = made.on;
    fields["leaves_left_to_host"] = made.left_to_host;
    fields["assemble_s"] = made.assemble_s;
    fields["write_s"] = made.write_s;
    return fields;
}

struct AssembleJob {
    const Context& context;
    std::string path;
    hmatrix::AssembleOptions options;
    int workers;

    nb::dict run(const hmatrix::MatrixProblem& problem, nb::handle progress) {
        options.progress = [progress](const hmatrix::AssembleProgress& at) {
            return told(progress, at.leaves_done, at.leaves, at.bytes_written);
        };
        hmatrix::Assembled made;
        {
            const GilReleased release;
            hmatrix::Workers threads(workers);
            made = hmatrix::assemble(context, threads, problem, path, options);
        }
        return assembled_to_dict(made);
    }
};

nb::dict assemble_mesh(const Context& context, nb::handle path, const hmatrix::LaplaceProblem& problem,
                       const nb::dict& how) {
    nb::dict keywords(how);
    const nb::object progress = keywords["progress"];
    const bool galerkin = nb::cast<bool>(keywords["galerkin"]);
    const int workers = nb::cast<int>(keywords["workers"]);
    nb::dict rest;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name != "progress" && name != "galerkin" && name != "workers") rest[key] = value;
    }
    AssembleJob job{context, file_name(path, "assemble a matrix"), assemble_options(rest), workers};
    if (galerkin) {
        const hmatrix::FunctorEntries entries(problem.galerkin());
        const auto on_gpu = hmatrix::galerkin_on_gpu(problem);
        return job.run({problem.centroids(), &entries, &on_gpu}, progress);
    }
    const hmatrix::FunctorEntries entries(problem.collocation());
    const auto on_gpu = hmatrix::collocation_on_gpu(problem);
    return job.run({problem.centroids(), &entries, &on_gpu}, progress);
}

// Points, and the Python function that computes the entry of each pair of them.
struct UserProblem {
    const Doubles& points;
    nb::object entries;
};

nb::dict assemble_entries(const Context& context, nb::handle path, UserProblem user, const nb::dict& how) {
    nb::dict rest;
    nb::object progress = nb::none();
    for (const auto& [key, value] : how) {
        if (nb::cast<std::string>(key) == "progress") {
            progress = nb::borrow(value);
        } else {
            rest[key] = value;
        }
    }
    AssembleJob job{context, file_name(path, "assemble a matrix"), assemble_options(rest), 1};
    const double* from = user.points.data();
    std::vector<hmatrix::Point> places(user.points.size() / 3);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = {from[3 * i], from[3 * i + 1], from[3 * i + 2]};
    const PythonEntries asked(std::move(user.entries));
    return job.run({places, &asked}, progress);
}

nb::dict counts_to_dict(const hmatrix::StoredSystem& self) {
    const hmatrix::SourceCounts counts = self.counts();
    nb::dict fields;
    fields["bytes_read"] = counts.bytes_read;
    fields["batches_taken"] = counts.batches_taken;
    fields["bytes_taken"] = counts.bytes_taken;
    fields["bytes_hit"] = counts.bytes_hit;
    fields["hit_rate"] = counts.hit_rate();
    fields["read_s"] = counts.read_s;
    fields["sweeps"] = self.sweeps();
    const hmatrix::StoredSystem::InMemory kept = self.in_memory();
    fields["pinned_bytes"] = kept.bytes;
    fields["pinned_tiers"] = kept.tiers;
    fields["pinned_batches"] = kept.batches;
    fields["slots"] = kept.slots;
    nb::dict paths;
    for (const auto& [path, bytes] : counts.bytes_by_path) paths[path.c_str()] = bytes;
    fields["bytes_by_path"] = paths;
    return fields;
}

double product_seconds(hmatrix::StoredSystem& self, int products, double accuracy) {
    const GilReleased release;
    return self.product_seconds(products, accuracy);
}

nb::object multiply(hmatrix::StoredSystem& self, const Doubles& x, double accuracy) {
    std::vector<double> y(x.size());
    {
        const GilReleased release;
        self.multiply(values_of(x), y, accuracy);
    }
    std::vector<std::size_t> shape;
    for (std::size_t i = 0; i < x.ndim(); ++i) shape.push_back(x.shape(i));
    return nb::cast(to_numpy(std::move(y), shape));
}

nb::dict result_to_dict(const hmatrix::ContinuedResult& found) {
    const hmatrix::SolveResult& result = found.result;
    nb::dict fields;
    fields["continued"] = hmatrix::to_string(found.how);
    fields["restarted_because"] = found.restarted_because;
    fields["sweeps_before"] = found.sweeps_before;
    fields["converged"] = result.converged;
    fields["stopped_by"] = result.stopped_by;
    fields["iterations"] = result.iterations;
    fields["inner_iterations"] = result.inner_iterations;
    fields["sweeps"] = result.sweeps;
    fields["relative_residual"] = result.relative_residual;
    fields["residuals"] = result.residuals;
    fields["history"] = result.history;
    return fields;
}

// Right-hand sides and first guesses, each of shape (columns, n).
struct SolveArrays {
    const Doubles& b;
    const Doubles& x0;
};

// Returns (x, result).
nb::tuple solve(hmatrix::StoredSystem& self, const Context& context, const SolveArrays& given, const nb::dict& how) {
    const Doubles& b = given.b;
    nb::dict rest;
    nb::object progress = nb::none(), checkpoint = nb::none();
    for (const auto& [key, value] : how) {
        const auto name = nb::cast<std::string>(key);
        if (name == "progress") {
            progress = nb::borrow(value);
        } else if (name == "checkpoint") {
            checkpoint = nb::borrow(value);
        } else {
            rest[key] = value;
        }
    }
    hmatrix::SystemSolve asked = solve_options(rest);
    // A handle: copies are made without the GIL.
    asked.options.progress = [progress = nb::handle(progress)](const hmatrix::Progress& at) {
        return told(progress, at.iteration, at.sweeps, at.relative_residual);
    };
    std::vector<double> x(values_of(given.x0).begin(), values_of(given.x0).end());
    const std::string file = checkpoint.is_none() ? std::string() : file_name(checkpoint, "solve");
    const auto run = [&](std::span<double> solution, const hmatrix::SolveOptions& options) {
        hmatrix::SystemSolve how_now = asked;
        how_now.options = options;
        return self.solve(values_of(b), solution, how_now);
    };
    hmatrix::ContinuedResult found;
    {
        const GilReleased release;
        if (checkpoint.is_none()) {
            found.result = run(x, asked.options);
        } else {
            const hmatrix::FileHeader& head = self.file().head();
            const hmatrix::Problem problem{head.unknowns, static_cast<std::int64_t>(b.size()) / head.unknowns,
                                           hmatrix::checksum_of(values_of(b)), head.tables_checksum};
            found = hmatrix::solve_continued({context, file, problem}, asked.options, x, run);
        }
    }
    return nb::make_tuple(to_numpy(std::move(x), {b.shape(0), b.shape(1)}), result_to_dict(found));
}

// Says what the header and the tables of a file say. The batches are not read.
nb::dict info(const Context& context, nb::handle path) {
    const std::string name = file_name(path, "open a matrix");
    std::optional<hmatrix::MatrixFile> file;
    {
        const GilReleased release;
        hmatrix::Workers workers(1);
        file.emplace(hmatrix::MatrixFile::open(context, workers, name));
    }
    nb::dict fields = head_to_dict(file->head());
    fields["about"] = text(file->tables().about);
    fields["largest_batch_bytes"] = file->largest_batch();
    std::vector<std::int64_t> tier_bytes(file->tiers());
    for (const hmatrix::BatchRecord& batch : file->tables().batches) {
        for (int tier = 0; tier < file->tiers(); ++tier) tier_bytes[tier] += batch.tier_bytes[tier];
    }
    fields["tier_bytes"] = tier_bytes;
    return fields;
}

void open_system(hmatrix::StoredSystem* self, const Context& context, nb::handle path, const nb::dict& keywords) {
    const std::string name = file_name(path, "open a matrix");
    const hmatrix::SystemOptions options = system_options(keywords);
    const GilReleased release;
    new (self) hmatrix::StoredSystem(context, name, options);
}

}  // namespace

void bind_system(nb::module_& module) {
    module.def(
        "assemble_mesh",
        [](const Context& context, nb::handle path, const Doubles& vertices, const Integers& triangles,
           const nb::dict& how) {
            const hmatrix::LaplaceProblem problem(mesh_of(vertices, triangles));
            return assemble_mesh(context, path, problem, how);
        },
        any("context"), any("path"), any("vertices"), any("triangles"), any("how"));
    module.def(
        "assemble_entries",
        [](const Context& context, nb::handle path, const Doubles& points, nb::object entries, const nb::dict& how) {
            return assemble_entries(context, path, {points, std::move(entries)}, how);
        },
        any("context"), any("path"), any("points"), any("entries"), any("how"));
    module.def("info", &info, any("context"), any("path"));
    nb::class_<hmatrix::StoredSystem>(module, "HMatrixSystem")
        .def("__init__", &open_system)
        .def_prop_ro("head", [](const hmatrix::StoredSystem& self) { return head_to_dict(self.file().head()); })
        .def_prop_ro("about", [](const hmatrix::StoredSystem& self) { return text(self.file().tables().about); })
        .def_prop_ro("counts", &counts_to_dict)
        .def("multiply", &multiply)
        .def("product_seconds", &product_seconds)
        .def("solve", [](hmatrix::StoredSystem& self, const Context& context, const Doubles& b, const Doubles& x0,
                         const nb::dict& how) { return solve(self, context, {b, x0}, how); });
}

}  // namespace penstock::python
