/* Restarts through the C ABI: written, found, read into other memory, in parts by two processes, and refused in words.
 *
 * Plain C11 with the C headers only. See abi_check.h, which also explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include <stddef.h>

#include "c/abi_check.h"
#include "penstock_restart.h"

enum { COUNT = 1000 };
static const uint64_t kShape[] = {COUNT, 3};

static penstock_restart* made_restart(const penstock_context* context, uint32_t process, uint32_t processes) {
    penstock_restart_options options = PENSTOCK_RESTART_OPTIONS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    penstock_restart* restart = NULL;
    options.process = process;
    options.processes = processes;
    options.memory = PENSTOCK_SYSTEM;
    options.not_durable = 1;
    if (!CHECK(penstock_restart_open(context, named("restart"), &options, &restart, &error) == PENSTOCK_OK)) {
        fprintf(stderr, "  %s\n", error.message);
        exit(1);
    }
    return restart;
}

static void set_rows(penstock_restart* restart, double* data, uint64_t first, uint64_t rows) {
    const uint64_t start[] = {first, 0}, count[] = {rows, 3};
    penstock_restart_field field = PENSTOCK_RESTART_FIELD_INIT;
    field.name = "gas/x";
    field.dtype = "float64";
    field.data = data;
    field.shape = kShape;
    field.start = start;
    field.count = count;
    field.rank = 2;
    CHECK(penstock_restart_set_field(restart, &field, NULL) == PENSTOCK_OK);
}

static void set_attributes(penstock_restart* restart, int64_t step) {
    const char* text = "flow";
    penstock_snapshot_attribute attribute = PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT;
    attribute.name = "step";
    attribute.dtype = "int64";
    attribute.values = &step;
    CHECK(penstock_restart_set_attribute(restart, &attribute, NULL) == PENSTOCK_OK);
    attribute.name = "model";
    attribute.dtype = NULL;
    attribute.texts = &text;
    CHECK(penstock_restart_set_attribute(restart, &attribute, NULL) == PENSTOCK_OK);
}

static int counts(const double* data, size_t count, double first) {
    for (size_t i = 0; i < count; ++i)
        if (data[i] != first + (double)i) return 0;
    return 1;
}

static void a_second_writer_is_refused(const penstock_context* context, double* data) {
    penstock_restart* second = made_restart(context, 0, 1);
    penstock_error error = PENSTOCK_ERROR_INIT;
    set_rows(second, data, 0, COUNT);
    CHECK(penstock_restart_write(second, NULL, &error) == PENSTOCK_IO_ERROR);
    CHECK(strstr(error.message, "another writer, of this program or another one, has this name") != NULL);
    penstock_restart_free(second);
}

static void a_restart_is_written_and_read(void) {
    static double data[3 * COUNT], found_data[3 * COUNT];
    penstock_context* context = made_context(0);
    penstock_restart* restart = made_restart(context, 0, 1);
    penstock_restart_facts facts = PENSTOCK_RESTART_FACTS_INIT;
    char room[4096], name[16], model[16];
    penstock_text evidence = {room, sizeof(room), 0}, dtype = {name, sizeof(name), 0};
    penstock_text text = {model, sizeof(model), 0}, passed_over = {room, sizeof(room), 0};
    int32_t found = 1;
    uint64_t shape[PENSTOCK_MOST_DIMENSIONS], rank = 0, generation = 0;
    int64_t step = 0;
    for (size_t i = 0; i < 3 * COUNT; ++i) data[i] = 5 + (double)i;
    CHECK(penstock_restart_find(restart, &found, NULL) == PENSTOCK_OK && found == 0);
    set_rows(restart, data, 0, COUNT);
    set_attributes(restart, 77);
    CHECK(penstock_restart_use_stream(restart, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_write(restart, NULL, NULL) == PENSTOCK_OK);
    facts.evidence = &evidence;
    CHECK(penstock_restart_write(restart, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.generation == 2 && facts.data_bytes == sizeof(data) && strstr(room, "\"path\"") != NULL);
    CHECK(facts.is_locked == 1);
    a_second_writer_is_refused(context, data);
    facts.struct_size = offsetof(penstock_restart_facts, is_locked); /* of a program of an older header */
    facts.is_locked = 7;
    CHECK(penstock_restart_write(restart, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.generation == 3 && facts.is_locked == 7);
    facts.struct_size = sizeof(facts);
    penstock_restart_free(restart);

    restart = made_restart(context, 0, 1);
    CHECK(penstock_restart_find(restart, &found, NULL) == PENSTOCK_OK && found == 1);
    CHECK(penstock_restart_generation(restart, &generation, NULL) == PENSTOCK_OK && generation == 3);
    CHECK(penstock_restart_stored(restart, "gas/x", shape, &rank, &dtype, NULL) == PENSTOCK_OK);
    CHECK(rank == 2 && shape[0] == COUNT && shape[1] == 3 && strcmp(name, "float64") == 0);
    CHECK(penstock_restart_get_numbers(restart, "step", "int64", &step, sizeof(step), NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_get_text(restart, "model", &text, NULL) == PENSTOCK_OK);
    CHECK(step == 77 && strcmp(model, "flow") == 0);
    set_rows(restart, found_data, 0, COUNT);
    facts.passed_over = &passed_over;
    facts.evidence = NULL;
    CHECK(penstock_restart_read(restart, &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.generation == 3 && strcmp(room, "") == 0 && counts(found_data, 3 * COUNT, 5));
    penstock_restart_free(restart);
    penstock_context_destroy(context);
    unlink(named("restart.0"));
    unlink(named("restart.1"));
}

static void two_processes_write_one_file(void) {
    static double data[2][3 * COUNT / 2], found_data[3 * COUNT];
    penstock_context* context = made_context(0);
    penstock_restart* restarts[] = {made_restart(context, 0, 2), made_restart(context, 1, 2)};
    uint64_t digests[2], counts_of[2], coverage[2];
    uint32_t* sums[2];
    char part[1024], fault_room[1024];
    penstock_text name = {part, sizeof(part), 0}, fault = {fault_room, sizeof(fault_room), 0};
    penstock_restart_facts facts = PENSTOCK_RESTART_FACTS_INIT;
    int32_t found = 0;
    for (int process = 0; process < 2; ++process) {
        for (size_t i = 0; i < 3 * COUNT / 2; ++i) data[process][i] = (double)(i + (size_t)process * 3 * COUNT / 2);
        set_rows(restarts[process], data[process], (uint64_t)process * COUNT / 2, COUNT / 2);
        CHECK(penstock_restart_digest(restarts[process], &digests[process], NULL) == PENSTOCK_OK);
        CHECK(penstock_restart_begin(restarts[process], process == 0 ? NULL : part, &name, NULL) == PENSTOCK_OK);
    }
    CHECK(digests[0] == digests[1]);
    for (int process = 1; process >= 0; --process)
        CHECK(penstock_restart_move(restarts[process], &sums[process], &counts_of[process], &coverage[process], NULL) ==
              PENSTOCK_OK);
    CHECK(counts_of[0] == 1 && counts_of[1] == 1);
    sums[0][0] ^= sums[1][0];
    CHECK(penstock_restart_commit(restarts[1], sums[0], 1, 0, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_abandon(restarts[1], NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_commit(restarts[0], sums[0], 1, coverage[0] + coverage[1], &facts, NULL) == PENSTOCK_OK);
    CHECK(facts.generation == 1);
    set_rows(restarts[0], found_data, 0, COUNT);
    CHECK(penstock_restart_find(restarts[0], &found, NULL) == PENSTOCK_OK && found == 1);
    CHECK(penstock_restart_read_found(restarts[0], &fault, &facts, NULL) == PENSTOCK_OK && fault_room[0] == 0);
    CHECK(counts(found_data, 3 * COUNT, 0));
    CHECK(penstock_restart_pass_over(restarts[0], "wrong numbers", NULL) == PENSTOCK_IO_ERROR);
    penstock_restart_free(restarts[0]);
    penstock_restart_free(restarts[1]);
    penstock_context_destroy(context);
    unlink(named("restart.0"));
}

static void mistakes_are_refused(void) {
    penstock_context* context = made_context(0);
    penstock_restart* restart = made_restart(context, 0, 1);
    penstock_restart* none = NULL;
    penstock_restart_options options = PENSTOCK_RESTART_OPTIONS_INIT;
    penstock_restart_field field = PENSTOCK_RESTART_FIELD_INIT;
    penstock_restart_facts facts = PENSTOCK_RESTART_FACTS_INIT;
    penstock_error error = PENSTOCK_ERROR_INIT;
    int64_t step = 0;
    options.process = 4;
    CHECK(penstock_restart_open(context, named("restart"), &options, &none, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(none == NULL && strstr(error.message, "process 4 of 1") != NULL);
    options.process = 0;
    options.struct_size = 8;
    CHECK(penstock_restart_open(context, named("restart"), &options, &none, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_open(context, NULL, NULL, &none, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_set_field(restart, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_set_field(restart, &field, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_set_field(NULL, &field, NULL) == PENSTOCK_INVALID_ARGUMENT);
    facts.struct_size = 8;
    CHECK(penstock_restart_write(restart, &facts, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_get_numbers(restart, "step", "int64", &step, 8, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_read(restart, NULL, &error) == PENSTOCK_INVALID_ARGUMENT);
    set_rows(restart, NULL, 0, COUNT);
    CHECK(penstock_restart_write(restart, NULL, NULL) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(penstock_restart_clear(restart, NULL) == PENSTOCK_OK);
    set_attributes(restart, 7);
    CHECK(penstock_restart_write(restart, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_read(restart, NULL, NULL) == PENSTOCK_OK);
    CHECK(penstock_restart_get_numbers(restart, "step", "int32", &step, 4, &error) == PENSTOCK_INVALID_ARGUMENT);
    CHECK(strstr(error.message, "8 bytes of int64, and 4 of int32") != NULL);
    penstock_restart_free(restart);
    penstock_restart_free(NULL);
    penstock_context_destroy(context);
}

static void tests(void) {
    a_restart_is_written_and_read();
    two_processes_write_one_file();
    mistakes_are_refused();
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {"restart.0", "restart.1", NULL};
    return run_in_folder(count, arguments, tests, leaves);
}
