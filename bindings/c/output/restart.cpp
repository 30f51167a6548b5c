// The functions of penstock_restart.h.
#include "penstock/restart.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "c/output/attributes.hpp"
#include "c/boundary.hpp"
#include "c/handles.hpp"
#include "penstock_restart.h"
#include "c/values.hpp"

using penstock::c::copied;
using penstock::c::free_handle;
using penstock::c::give_handle;
using penstock::c::give_text;
using penstock::c::guarded;
using penstock::c::lengths;
using penstock::c::opened;
using penstock::c::refuse;
using penstock::c::required;

namespace {

// Bytes of the struct's first version.
constexpr std::uint64_t kFirstRestartFacts = offsetof(penstock_restart_facts, is_locked);

penstock::RestartOptions restart_options(const penstock_restart_options* given) {
    const auto wanted = copied("penstock_restart_options", given);
    penstock::RestartOptions options;
    options.process = wanted.process;
    options.processes = std::max<std::uint32_t>(wanted.processes, 1);
    options.memory = penstock::c::checked_kind(wanted.memory);
    options.durable = wanted.not_durable == 0;
    options.transfer.path = penstock::c::path_named(wanted.path);
    return options;
}

penstock::RestartField restart_field(const penstock_restart_field* given) {
    const auto wanted = copied("penstock_restart_field", &required("penstock_restart_field", given));
    penstock::RestartField field;
    field.name = &required("the name of the field", wanted.name);
    field.dtype = &required("the type of the field", wanted.dtype);
    field.data = wanted.data;
    field.shape = lengths("set field", wanted.shape, wanted.rank);
    if (wanted.start != nullptr) field.start = lengths("set field", wanted.start, wanted.rank);
    if (wanted.count != nullptr) field.count = lengths("set field", wanted.count, wanted.rank);
    return field;
}

void check_facts(const penstock_restart_facts* facts) {
    if (facts == nullptr) return;
    penstock::c::check_struct("penstock_restart_facts", facts,
                              {facts->struct_size, kFirstRestartFacts, facts->struct_size});
}

void give_facts(const penstock::RestartFacts& told, penstock_restart_facts* facts) {
    if (facts == nullptr) return;
    facts->generation = told.generation;
    facts->data_bytes = told.data_bytes;
    facts->seconds = told.seconds;
    if (facts->struct_size >= sizeof(*facts)) facts->is_locked = told.is_locked ? 1 : 0;
    if (facts->passed_over != nullptr) give_text(facts->passed_over, told.passed_over);
    if (facts->evidence != nullptr) give_text(facts->evidence, told.evidence.to_json());
}

}  // namespace

extern "C" {

int penstock_restart_open(const penstock_context* context, const char* name, const penstock_restart_options* options,
                          penstock_restart** restart, penstock_error* error) {
    return guarded("open restart", error, [&] {
        give_handle(restart, [&] {
            return penstock::c::OpenedRestart{
                penstock::Restart(opened(context), &required("the file name", name), restart_options(options))};
        });
    });
}

int penstock_restart_set_field(penstock_restart* restart, const penstock_restart_field* field, penstock_error* error) {
    return guarded("set field", error, [&] { opened(restart).restart.set_field(restart_field(field)); });
}

int penstock_restart_set_attribute(penstock_restart* restart, const penstock_snapshot_attribute* attribute,
                                   penstock_error* error) {
    return guarded("set attribute", error,
                   [&] { opened(restart).restart.set_attribute(penstock::c::snapshot_attribute(attribute)); });
}

int penstock_restart_clear(penstock_restart* restart, penstock_error* error) {
    return guarded("clear restart", error, [&] { opened(restart).restart.clear(); });
}

int penstock_restart_use_stream(penstock_restart* restart, void* stream, penstock_error* error) {
    return guarded("use stream", error,
                   [&] { opened(restart).restart.use_stream(reinterpret_cast<std::uintptr_t>(stream)); });
}

int penstock_restart_write(penstock_restart* restart, penstock_restart_facts* facts, penstock_error* error) {
    return guarded("write restart", error, [&] {
        check_facts(facts);
        give_facts(opened(restart).restart.write(), facts);
    });
}

int penstock_restart_find(penstock_restart* restart, int32_t* found, penstock_error* error) {
    return guarded("find restart", error, [&] {
        required("the place for the answer", found) = 0;
        *found = opened(restart).restart.find() ? 1 : 0;
    });
}

int penstock_restart_stored(const penstock_restart* restart, const char* field, uint64_t* shape, uint64_t* rank,
                            penstock_text* dtype, penstock_error* error) {
    return guarded("look at field", error, [&] {
        const penstock::SnapshotDataset stored = opened(restart).restart.stored(&required("the field", field));
        required("the place for the rank", rank) = stored.shape.size();
        std::copy(stored.shape.begin(), stored.shape.end(), &required("the place for the shape", shape));
        if (dtype != nullptr) give_text(dtype, stored.dtype);
    });
}

int penstock_restart_get_numbers(const penstock_restart* restart, const char* name, const char* dtype, void* values,
                                 uint64_t bytes, penstock_error* error) {
    return guarded("get attribute", error, [&] {
        const auto found = opened(restart).restart.attribute(&required("the name", name));
        const std::string wanted = &required("the type", dtype);
        if (found.dtype != wanted || found.values.size() != bytes) {
            refuse("get attribute",
                   "attribute '" + found.name + "' has " + std::to_string(found.values.size()) + " bytes of " +
                       (found.dtype.empty() ? "text" : found.dtype) + ", and " + std::to_string(bytes) + " of " +
                       wanted + " are asked for",
                   "ask for it as it was set");
        }
        if (bytes != 0)
            std::memcpy(&required("the place for the values", static_cast<std::byte*>(values)), found.values.data(),
                        bytes);
    });
}

int penstock_restart_get_text(const penstock_restart* restart, const char* name, penstock_text* text,
                              penstock_error* error) {
    return guarded("get attribute", error, [&] {
        const auto found = opened(restart).restart.attribute(&required("the name", name));
        if (found.texts.empty())
            refuse("get attribute", "attribute '" + found.name + "' is no text", "get its numbers");
        give_text(&required("the place for the text", text), found.texts[0]);
    });
}

int penstock_restart_read(penstock_restart* restart, penstock_restart_facts* facts, penstock_error* error) {
    return guarded("read restart", error, [&] {
        check_facts(facts);
        give_facts(opened(restart).restart.read(), facts);
    });
}

int penstock_restart_digest(const penstock_restart* restart, uint64_t* digest, penstock_error* error) {
    return guarded("digest", error,
                   [&] { required("the place for the digest", digest) = opened(restart).restart.digest(); });
}

int penstock_restart_begin(penstock_restart* restart, const char* part, penstock_text* name, penstock_error* error) {
    return guarded("write restart", error, [&] {
        const std::string made = opened(restart).restart.begin(part == nullptr ? "" : part);
        if (name != nullptr) give_text(name, made);
    });
}

int penstock_restart_move(penstock_restart* restart, uint32_t** sums, uint64_t* count, uint64_t* coverage,
                          penstock_error* error) {
    return guarded("write restart", error, [&] {
        auto& own = opened(restart);
        required("the place for the sums", sums) = nullptr;
        required("the place for their number", count) = 0;
        required("the place for the coverage", coverage) = 0;
        own.moved = own.restart.move();
        *sums = own.moved.sums.data();
        *count = own.moved.sums.size();
        *coverage = own.moved.coverage;
    });
}

int penstock_restart_commit(penstock_restart* restart, const uint32_t* sums, uint64_t count, uint64_t coverage,
                            penstock_restart_facts* facts, penstock_error* error) {
    return guarded("write restart", error, [&] {
        check_facts(facts);
        auto& own = opened(restart);
        if (count != 0) required("the sums", sums);
        const penstock::RestartPart whole{{sums, sums + count}, coverage};
        own.moved = {};
        give_facts(own.restart.commit(whole), facts);
    });
}

int penstock_restart_abandon(penstock_restart* restart, penstock_error* error) {
    return guarded("abandon restart", error, [&] {
        opened(restart).restart.abandon();
        opened(restart).moved = {};
    });
}

int penstock_restart_generation(const penstock_restart* restart, uint64_t* generation, penstock_error* error) {
    return guarded("ask for the generation", error, [&] {
        required("the place for the generation", generation) = 0;
        *generation = opened(restart).restart.generation();
    });
}

int penstock_restart_read_found(penstock_restart* restart, penstock_text* fault, penstock_restart_facts* facts,
                                penstock_error* error) {
    return guarded("read restart", error, [&] {
        check_facts(facts);
        penstock::RestartFacts told;
        const std::string found = opened(restart).restart.read_found(told);
        give_text(&required("the place for the fault", fault), found);
        give_facts(told, facts);
    });
}

int penstock_restart_pass_over(penstock_restart* restart, const char* fault, penstock_error* error) {
    return guarded("read restart", error, [&] { opened(restart).restart.pass_over(&required("the fault", fault)); });
}

void penstock_restart_free(penstock_restart* restart) { free_handle(restart); }

}  // extern "C"
