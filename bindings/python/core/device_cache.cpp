// DeviceCache in Python. Long work is done in pieces, so that Ctrl-C can end it between two of them.
#include "penstock/device_cache.hpp"

#include "core.hpp"

namespace penstock::python {
namespace {

using Use = BorrowedMemory::Use;

// Roughly what a GPU, or the emulated device, does in less than a second.
struct Piece {
    std::uint64_t rows, bytes;
};
constexpr Piece kPiece{1 << 19, 256 * kMiB}, kEmulatedPiece{1 << 14, 16 * kMiB};
// The next piece is larger after one that took no longer: the more rows, the closer together an order puts them.
constexpr std::chrono::milliseconds kQuick{50};
constexpr std::uint64_t kMostGrowth = 8;
constexpr std::uint64_t kPieceAlignment = 2 * kMiB;  // no page is split between pieces

struct PythonDeviceCache {
    Context context;
    DeviceCache cache;
};

CachePolicy policy_of(const std::string& name) {
    if (const auto policy = cache_policy_from_string(name)) return *policy;
    throw Error(ErrorCode::invalid_argument, "make a device cache", "there is no policy '" + name + "'",
                "use one of sweep-resistant, clock, fifo, pinned-range");
}

CacheFetch fetch_of(const std::string& name) {
    if (const auto fetch = cache_fetch_from_string(name)) return *fetch;
    throw Error(ErrorCode::invalid_argument, "make a device cache", "there is no way to fetch '" + name + "'",
                "use one of auto, pages, rows");
}

DeviceCacheOptions cache_options(const nb::kwargs& keywords) {
    DeviceCacheOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "page_bytes")
            options.page_bytes = byte_count(name, value);
        else if (name == "cache_bytes")
            options.cache_bytes = byte_count(name, value);
        else if (name == "policy")
            options.policy = policy_of(option<std::string>(name, value));
        else if (name == "threads")
            options.threads = option<std::uint32_t>(name, value);
        else if (name == "slots")
            options.slots = option<std::uint32_t>(name, value);
        else if (name == "timeout")
            options.timeout = deadline_after(name, value).left();
        else if (name == "map")
            options.map = option<bool>(name, value);
        else if (name == "fetch")
            options.fetch = fetch_of(option<std::string>(name, value));
        else
            throw nb::type_error(("a cache has no option '" + name + "'").c_str());
    }
    return options;
}

// Takes an open file, or a pair of a list of open files and the bytes of a stripe.
StripedFiles files_of(nb::handle array) {
    if (!nb::isinstance<nb::tuple>(array)) return {{nb::cast<const PythonFile&>(array).file}};
    const auto pair = nb::cast<nb::tuple>(array);
    StripedFiles striped{{}, byte_count("stripe_bytes", pair[1])};
    for (const nb::handle file : nb::cast<nb::list>(pair[0]))
        striped.files.push_back(nb::cast<const PythonFile&>(file).file);
    return striped;
}

std::unique_ptr<PythonDeviceCache> make_cache(const Context& context, nb::list arrays, const nb::kwargs& keywords) {
    const DeviceCacheOptions options = cache_options(keywords);
    std::vector<StripedFiles> striped;
    for (const nb::handle array : arrays) striped.push_back(files_of(array));
    const GilReleased release;
    return std::make_unique<PythonDeviceCache>(PythonDeviceCache{context, DeviceCache(context, striped, options)});
}

Piece piece_of(const PythonDeviceCache& self) {
    return self.context.device().info().emulated ? kEmulatedPiece : kPiece;
}

void heed_signals() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

RowLayout row_layout_of(nb::handle row_bytes, nb::handle offset_bytes, nb::handle count) {
    return {byte_count("row_bytes", row_bytes), byte_count("offset_bytes", offset_bytes), byte_count("count", count)};
}

struct RowsMove {
    Use use;
    std::uint32_t array;
    nb::handle indices, memory;
    RowLayout rows;
};

// Calls `move` with a part of the indices and the matching part of the memory.
template <class Move>
void move_rows(const PythonDeviceCache& self, const RowsMove& given, Move move) {
    const BorrowedMemory indices(self.context, given.indices, Use::read_from);
    const BorrowedMemory memory(self.context, given.memory, given.use);
    const std::uint64_t row = std::max<std::uint64_t>(given.rows.row_bytes, 1);
    const std::uint64_t count = indices.view().bytes / sizeof(std::int64_t);
    const bool fits = memory.view().bytes == count * given.rows.row_bytes;
    const Piece most = piece_of(self);
    const std::uint64_t first = fits ? std::clamp<std::uint64_t>(most.bytes / row, 1, most.rows) : count;
    std::uint64_t piece = first, some = 0;
    for (std::uint64_t at = 0; at < count; at += some) {
        some = std::min(piece, count - at);
        const Clock::time_point began = Clock::now();
        {
            const GilReleased release;
            if (fits)
                move(indices.view().slice(at * 8, some * 8), memory.view().slice(at * row, some * row));
            else
                move(indices.view(), memory.view());  // move() refuses these
        }
        heed_signals();
        if (Clock::now() - began < kQuick) piece = std::min(2 * piece, first * kMostGrowth);
    }
}

struct RangeMove {
    Use use;
    std::uint64_t offset_bytes;
    nb::handle memory;
};

template <class Move>
void move_range(const PythonDeviceCache& self, const RangeMove& given, Move move) {
    const BorrowedMemory memory(self.context, given.memory, given.use);
    const std::uint64_t end = given.offset_bytes + memory.view().bytes, piece = piece_of(self).bytes;
    for (std::uint64_t at = given.offset_bytes; at < end;) {
        const std::uint64_t next = std::min(end, align_down(at + piece, kPieceAlignment));
        {
            const GilReleased release;
            move(at, memory.view().slice(at - given.offset_bytes, next - at));
        }
        heed_signals();
        at = next;
    }
}

nb::dict counts_to_dict(const DeviceCacheStatistics::Counts& counts) {
    nb::dict fields;
    fields["hits"] = counts.hits;
    fields["misses"] = counts.misses;
    fields["joined"] = counts.joined;
    fields["evictions"] = counts.evictions;
    fields["write_backs"] = counts.write_backs;
    fields["failures"] = counts.failures;
    fields["loaded_bytes"] = counts.loaded_bytes;
    fields["written_back_bytes"] = counts.written_back_bytes;
    return fields;
}

void add_waits(nb::dict& fields, const std::vector<DeviceCacheStatistics::WaitBucket>& buckets) {
    nb::list cycles, ns;
    for (const auto& bucket : buckets) {
        cycles.append(nb::make_tuple(bucket.low_cycles, bucket.count));
        ns.append(nb::make_tuple(bucket.low_ns, bucket.count));
    }
    fields["wait_cycles"] = cycles;
    fields["wait_ns"] = ns;
}

struct MovedByItself {
    std::uint64_t pages, rows;
};

nb::dict served_to_dict(const std::vector<DeviceCacheStatistics::Served>& sources, const MovedByItself& gpu) {
    nb::dict served;
    for (const auto& one : sources) {
        nb::dict fields;
        fields["requests"] = one.requests;
        fields["bytes"] = one.bytes;
        served[one.source.c_str()] = fields;
    }
    served["gpu_pages"] = gpu.pages;
    served["gpu_rows"] = gpu.rows;
    return served;
}

nb::dict array_to_dict(const DeviceCacheStatistics::Array& array) {
    nb::dict fields;
    nb::list files;
    fields["file"] = text(array.name);
    fields["bytes"] = array.bytes;
    fields["mapped"] = array.mapped;
    fields["mapping_refusal"] = array.mapping_refusal;
    fields["stripe_bytes"] = array.stripe_bytes != 0 ? nb::cast(array.stripe_bytes) : nb::none();
    for (const auto& file : array.files) {
        nb::dict one;
        one["file"] = text(file.name);
        one["bytes"] = file.bytes;
        one["served"] = served_to_dict(file.served, {file.mapped_pages, file.mapped_rows});
        one["gpu_bytes"] = file.mapped_bytes;
        one["failed_requests"] = file.failed_requests;
        files.append(one);
    }
    fields["files"] = files;
    return fields;
}

nb::dict statistics(const PythonDeviceCache& self) {
    DeviceCacheStatistics found;
    {
        const GilReleased release;
        found = self.cache.statistics();
    }
    nb::dict fields = counts_to_dict(found.total);
    nb::list processors, arrays;
    for (const auto& one : found.processors) {
        nb::dict counts = counts_to_dict(one.counts);
        counts["processor"] = one.index;
        add_waits(counts, one.waits);
        processors.append(counts);
    }
    for (const auto& array : found.arrays) arrays.append(array_to_dict(array));
    fields["processors"] = processors;
    add_waits(fields, found.waits);
    fields["cycles_per_ns"] = found.cycles_per_ns;
    fields["served"] = served_to_dict(found.served, {found.mapped_pages, found.mapped_rows});
    fields["ordered_rows"] = found.ordered_rows;
    fields["failed_requests"] = found.failed_requests;
    fields["direct_by"] = found.direct_by;
    fields["arrays"] = arrays;
    fields["page_bytes"] = found.page_bytes;
    fields["pages"] = found.pages;
    fields["pages_to_pin"] = found.pages_to_pin;
    fields["device_bytes"] = found.device_bytes;
    fields["pinned_bytes"] = found.pinned_bytes;
    return fields;
}

void advise(const PythonDeviceCache& self, std::uint32_t array, nb::handle advice) {
    const auto name = option<std::string>("advice", advice);
    const auto known = cache_advice_from_string(name);
    if (!known) {
        throw Error(ErrorCode::invalid_argument, "advise", "there is no advice '" + name + "'",
                    "use one of sweep, random, once, none");
    }
    const GilReleased release;
    self.cache.advise(array, *known);
}

using OnRange = void (DeviceCache::*)(std::uint32_t, std::uint64_t, std::uint64_t) const;

auto on_range(OnRange function) {
    return [function](const PythonDeviceCache& self, std::uint32_t array, nb::handle offset_bytes, nb::handle bytes) {
        const std::uint64_t offset = byte_count("offset_bytes", offset_bytes), length = byte_count("bytes", bytes);
        const GilReleased release;
        (self.cache.*function)(array, offset, length);
    };
}

void bind_moves(nb::class_<PythonDeviceCache>& type) {
    using Self = const PythonDeviceCache&;
    using nb::arg;
    type.def(
        "gather",
        [](Self self, std::uint32_t array, nb::handle indices, nb::handle to, nb::tuple rows) {
            const RowLayout layout = row_layout_of(rows[0], rows[1], rows[2]);
            move_rows(self, {Use::write_into, array, indices, to, layout}, [&](MemoryView which, MemoryView where) {
                self.cache.gather(array, layout, which, where);
            });
        },
        arg("array"), any("indices"), any("to"), arg("rows"));
    type.def(
        "scatter",
        [](Self self, std::uint32_t array, nb::handle indices, nb::handle from, nb::tuple rows) {
            const RowLayout layout = row_layout_of(rows[0], rows[1], rows[2]);
            move_rows(self, {Use::read_from, array, indices, from, layout}, [&](MemoryView which, MemoryView where) {
                self.cache.scatter(array, layout, which, where);
            });
        },
        arg("array"), any("indices"), any("from"), arg("rows"));
    type.def(
        "read",
        [](Self self, std::uint32_t array, nb::handle offset_bytes, nb::handle to) {
            move_range(self, {Use::write_into, byte_count("offset_bytes", offset_bytes), to},
                       [&](std::uint64_t at, MemoryView part) { self.cache.read(array, at, part); });
        },
        arg("array"), any("offset_bytes"), any("to"));
    type.def(
        "write",
        [](Self self, std::uint32_t array, nb::handle offset_bytes, nb::handle from) {
            move_range(self, {Use::read_from, byte_count("offset_bytes", offset_bytes), from},
                       [&](std::uint64_t at, MemoryView part) { self.cache.write(array, at, part); });
        },
        arg("array"), any("offset_bytes"), any("from"));
}

}  // namespace

void bind_device_cache(nb::module_& module) {
    using Self = const PythonDeviceCache&;
    using nb::arg;
    const auto release = nb::call_guard<GilReleased>();
    nb::class_<PythonDeviceCache> type(module, "DeviceCache");
    bind_moves(type);
    constexpr std::pair<const char*, OnRange> kOnRange[] = {
        {"prefetch", &DeviceCache::prefetch}, {"pin", &DeviceCache::pin},
        {"unpin", &DeviceCache::unpin},       {"keep", &DeviceCache::keep},
        {"invalidate", &DeviceCache::invalidate},
    };
    for (const auto& [name, function] : kOnRange)
        type.def(name, on_range(function), arg("array"), any("offset_bytes"), any("bytes"));
    type.def("advise", &advise, arg("array"), any("advice"));
    type.def("flush", [](Self self) { self.cache.flush(); }, release);
    type.def("check", [](Self self) { self.cache.check(); }, release);
    type.def("close", [](Self self) { self.cache.close(); }, release);
    type.def("statistics", &statistics);
    type.def("ref", [](Self self, std::uint32_t array) {
        return reinterpret_cast<std::uintptr_t>(self.cache.ref(array));
    });
    module.def("device_cache", &make_cache, arg("context"), arg("arrays"), arg("options"));
}

}  // namespace penstock::python
