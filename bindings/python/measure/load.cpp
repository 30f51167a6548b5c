// The load generator in Python: it takes options from keywords, Ctrl-C ends a run, and the report is a dict.
#include "load/load.hpp"

#include <functional>
#include <future>
#include <string>
#include <system_error>
#include <unordered_map>

#include "measure.hpp"
#include "load/copies.hpp"

namespace penstock::python {
namespace {

using load::CompletionMode;
using load::CopyWait;
using load::LoadOptions;
using load::LoadReport;
using load::RequestOrder;
using Use = BorrowedMemory::Use;

[[noreturn]] void refuse_word(const std::string& name, const std::string& word, const char* valid) {
    throw Error(ErrorCode::invalid_argument, "measure load", name + " '" + word + "' is none of " + valid);
}

unsigned percent_of_reads(const std::string& direction) {
    if (direction == "read") return 100;
    if (direction == "write") return 0;
    refuse_word("direction", direction, "read, write");
}

RequestOrder order_of(const std::string& name) {
    if (name == "sequential") return RequestOrder::sequential;
    if (name == "random") return RequestOrder::random;
    refuse_word("order", name, "sequential, random");
}

CompletionMode completion_of(const std::string& name) {
    if (name == "wait") return CompletionMode::wait;
    if (name == "callback") return CompletionMode::callback;
    refuse_word("completion", name, "wait, callback");
}

using Setter = std::function<void(LoadOptions&, const std::string&, nb::handle)>;

template <class Field>
Setter number(Field LoadOptions::*field) {
    return [field](LoadOptions& options, const std::string& name, nb::handle value) {
        options.*field = option<Field>(name, value);
    };
}

std::unordered_map<std::string, Setter> setters() {
    using Name = const std::string&;
    return {
        {"direction",
         [](LoadOptions& o, Name n, nb::handle v) { o.read_percent = percent_of_reads(option<std::string>(n, v)); }},
        {"read_percent", number(&LoadOptions::read_percent)},
        {"request_bytes", number(&LoadOptions::request_bytes)},
        {"request_bytes_max", number(&LoadOptions::request_bytes_max)},
        {"request_bytes_step", number(&LoadOptions::request_bytes_step)},
        {"threads", number(&LoadOptions::threads)},
        {"in_flight", number(&LoadOptions::in_flight)},
        {"batch", number(&LoadOptions::batch)},
        {"completion",
         [](LoadOptions& o, Name n, nb::handle v) { o.completion = completion_of(option<std::string>(n, v)); }},
        {"order", [](LoadOptions& o, Name n, nb::handle v) { o.order = order_of(option<std::string>(n, v)); }},
        {"seed", number(&LoadOptions::seed)},
        {"alignment", number(&LoadOptions::alignment)},
        {"unaligned", number(&LoadOptions::unaligned)},
        {"offset", [](LoadOptions& o, Name n, nb::handle v) { o.offset = byte_count(n, v); }},
        {"bytes", [](LoadOptions& o, Name n, nb::handle v) { o.bytes = byte_count(n, v); }},
        {"whole_span", number(&LoadOptions::whole_span)},
        {"repeat", number(&LoadOptions::repeat)},
        {"requests_per_thread", number(&LoadOptions::requests_per_thread)},
        {"seconds", number(&LoadOptions::seconds)},
        {"warm_requests", number(&LoadOptions::warm_requests)},
        {"mirror", number(&LoadOptions::mirror)},
        {"check_last", number(&LoadOptions::check_last)},
        {"plain", number(&LoadOptions::plain)},
        {"plain_direct", number(&LoadOptions::plain_direct)},
        {"stamp_seed",
         [](LoadOptions& o, Name n, nb::handle v) {
             if (!v.is_none()) o.stamp_seed = option<std::uint64_t>(n, v);
         }},
    };
}

// Keywords that are no options of the load are transfer options.
LoadOptions load_options(const nb::kwargs& keywords) {
    const auto known = setters();
    LoadOptions options;
    nb::dict rest;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        const auto found = known.find(name);
        if (found == known.end())
            rest[key] = value;
        else
            found->second(options, name, value);
    }
    options.transfer = transfer_options(nb::borrow<nb::kwargs>(rest));
    return options;
}

double microseconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

nb::object histogram_to_dict(const Histogram& histogram) {
    if (histogram.count() == 0) return nb::none();
    nb::dict fields;
    fields["count"] = histogram.count();
    fields["min_us"] = microseconds(histogram.min_ns());
    fields["mean_us"] = histogram.mean_ns() / 1e3;
    fields["p50_us"] = microseconds(histogram.percentile_ns(50));
    fields["p99_us"] = microseconds(histogram.percentile_ns(99));
    fields["p999_us"] = microseconds(histogram.percentile_ns(99.9));
    fields["max_us"] = microseconds(histogram.max_ns());
    nb::list buckets;
    for (const Histogram::HistogramBucket& bucket : histogram.buckets()) {
        nb::list pair;
        pair.append(microseconds(bucket.low_ns));
        pair.append(bucket.count);
        buckets.append(pair);
    }
    fields["buckets"] = buckets;
    return fields;
}

nb::dict report_to_dict(const LoadReport& report) {
    nb::dict fields, paths;
    for (const auto& [path, bytes] : report.path_bytes) paths[path.c_str()] = bytes;
    nb::list fallbacks;
    for (const std::string& cause : report.fallbacks) fallbacks.append(text(cause));
    fields["bytes"] = report.bytes;
    fields["operations"] = report.operations;
    fields["submissions"] = report.submissions;
    fields["seconds"] = report.seconds;
    fields["cpu_user_s"] = report.cpu_user_s;
    fields["cpu_system_s"] = report.cpu_system_s;
    fields["reads"] = histogram_to_dict(report.reads);
    fields["writes"] = histogram_to_dict(report.writes);
    fields["path_bytes"] = paths;
    fields["fallbacks"] = fallbacks;
    fields["verified_bytes"] = report.verified_bytes;
    nb::list moved;
    for (const load::LoadRange& range : report.moved) moved.append(nb::make_tuple(range.offset, range.bytes));
    fields["moved"] = moved;
    fields["reached_limit"] = report.reached_limit;
    return fields;
}

// Runs `work` on another thread and waits for it. If a signal handler raises, sets `cancel`, and raises after the work
// has ended, because the work uses the caller's memory.
template <class Work>
auto run_interruptibly(std::atomic<bool>& cancel, Work work) {
    std::future<decltype(work())> running;
    try {
        running = std::async(std::launch::async, std::move(work));
    } catch (const std::system_error& error) {
        throw Error(ErrorCode::out_of_memory, "start a measuring thread", error.code().message(),
                    "raise the limit of threads (ulimit -u)");
    }
    try {
        wait_in_slices(Deadline::never(),
                       [&](Deadline next) { return running.wait_for(next.left()) == std::future_status::ready; });
    } catch (...) {
        cancel = true;
        const GilReleased release;
        running.wait();
        throw;
    }
    return running.get();
}

nb::dict run(const Context& context, nb::list files, nb::handle memory, const nb::kwargs& keywords) {
    LoadOptions options = load_options(keywords);
    need_own_process(context);
    std::vector<File> opened;
    for (const nb::handle file : files) opened.push_back(nb::cast<const PythonFile&>(file).file);
    const BorrowedMemory borrowed(context, memory, options.read_percent == 0 ? Use::read_from : Use::write_into);
    const MemoryView view = borrowed.view();
    if (options.stamp_seed && options.read_percent == 0 && borrowed.is_foreign()) {
        // The run stamps this memory, so an export for reading does not suffice.
        const BorrowedMemory writable(context, memory, Use::write_into);
    }
    std::atomic<bool> cancel{false};
    options.cancel = &cancel;
    return report_to_dict(run_interruptibly(cancel, [&] { return load::run_load(context, opened, view, options); }));
}

CopyWait wait_of(const std::string& name) {
    if (name == "each") return CopyWait::each;
    if (name == "at end") return CopyWait::at_end;
    refuse_word("wait", name, "each, at end");
}

load::CopyOptions copy_options(const nb::kwargs& keywords) {
    load::CopyOptions options;
    for (const auto& [key, value] : keywords) {
        const auto name = nb::cast<std::string>(key);
        if (name == "to_device")
            options.to_device = option<bool>(name, value);
        else if (name == "bytes")
            options.bytes = byte_count(name, value);
        else if (name == "multiplicity")
            options.multiplicity = option<unsigned>(name, value);
        else if (name == "threads")
            options.threads = option<bool>(name, value);
        else if (name == "wait")
            options.wait = wait_of(option<std::string>(name, value));
        else if (name == "copies")
            options.copies = option<std::uint64_t>(name, value);
        else if (name == "seconds")
            options.seconds = option<double>(name, value);
        else if (name == "stamp_seed")
            options.stamp_seed = option<std::uint64_t>(name, value);
        else
            throw nb::type_error(("copies have no option '" + name + "'").c_str());
    }
    return options;
}

nb::dict copies(const Context& context, nb::handle device, nb::handle host, const nb::kwargs& keywords) {
    load::CopyOptions options = copy_options(keywords);
    need_own_process(context);
    // Both are written: the source is stamped, and the destination receives the bytes.
    const BorrowedMemory far(context, device, Use::write_into), near(context, host, Use::write_into);
    std::atomic<bool> cancel{false};
    options.cancel = &cancel;
    const load::CopyReport report =
        run_interruptibly(cancel, [&] { return load::run_copies(context, far.view(), near.view(), options); });
    nb::dict fields;
    fields["copies"] = report.copies;
    fields["bytes"] = report.bytes;
    fields["seconds"] = report.seconds;
    fields["cpu_user_s"] = report.cpu_user_s;
    fields["cpu_system_s"] = report.cpu_system_s;
    fields["each"] = histogram_to_dict(report.each);
    return fields;
}

std::uint64_t memory_bytes(nb::handle span_bytes, const nb::kwargs& keywords) {
    return load::memory_needed(load_options(keywords), byte_count("span_bytes", span_bytes));
}

}  // namespace

void bind_load(nb::module_& module) {
    using nb::arg;
    module.def("run_load", &run, arg("context"), arg("files"), any("memory"), arg("options"));
    module.def("run_copies", &copies, arg("context"), any("device"), any("host"), arg("options"));
    module.def("load_memory_bytes", &memory_bytes, any("span_bytes"), arg("options"));
}

}  // namespace penstock::python
