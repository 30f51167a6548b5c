/* Each function of histories, snapshots and restarts gets a null handle, and one of another kind: it refuses both in
 * one line, and touches neither. A handle that was given back is freed memory, and no test here.
 *
 * See abi_check.h, which also explains --control.
 */
#define _POSIX_C_SOURCE 200809L
#include "c/abi_check.h"
#include "penstock_history.h"
#include "penstock_restart.h"
#include "penstock_snapshot.h"

static penstock_error error = PENSTOCK_ERROR_INIT;
static const char* words; /* of the refusal */

#define REFUSED(call) check_refused(call, PENSTOCK_INVALID_ARGUMENT, &error, words)

static void definitions_of_a_history(penstock_history* history) {
    penstock_history_variable variable = PENSTOCK_HISTORY_VARIABLE_INIT;
    penstock_history_constant constant = PENSTOCK_HISTORY_CONSTANT_INIT;
    penstock_history_preset preset = PENSTOCK_HISTORY_PRESET_INIT;
    penstock_attribute attribute = PENSTOCK_ATTRIBUTE_INIT;
    uint64_t *numbers = NULL, count = 0, digest = 0;
    REFUSED(penstock_history_define(history, &variable, &error));
    REFUSED(penstock_history_define_constant(history, &constant, &error));
    REFUSED(penstock_history_set_attribute(history, NULL, &attribute, &error));
    REFUSED(penstock_history_use_preset(history, &preset, &error));
    REFUSED(penstock_history_begin(history, &error));
    REFUSED(penstock_history_digest(history, &digest, &error));
    REFUSED(penstock_history_cuts(history, &numbers, &count, &error));
    REFUSED(penstock_history_coverage(history, &numbers, &count, &error));
    CHECK(numbers == NULL && count == 0 && digest == 0);
}

static void steps_of_a_history(penstock_history* history) {
    penstock_history_facts facts = PENSTOCK_HISTORY_FACTS_INIT;
    REFUSED(penstock_history_use_stream(history, NULL, &error));
    REFUSED(penstock_history_put(history, "T", &facts, &error));
    REFUSED(penstock_history_check_step(history, 0, &error));
    REFUSED(penstock_history_drop_step(history, &error));
    REFUSED(penstock_history_end_step(history, 0, &error));
    REFUSED(penstock_history_wait(history, &error));
    REFUSED(penstock_history_publish(history, 1, &error));
    REFUSED(penstock_history_describe(history, &facts, &error));
    REFUSED(penstock_history_close(history, &error));
    penstock_history_abandon(history);
}

static void a_snapshot(penstock_snapshot* snapshot) {
    penstock_snapshot_dataset dataset = PENSTOCK_SNAPSHOT_DATASET_INIT;
    penstock_snapshot_attribute attribute = PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT;
    penstock_snapshot_cells cells = PENSTOCK_SNAPSHOT_CELLS_INIT;
    penstock_snapshot_cell_sums sums = PENSTOCK_SNAPSHOT_CELL_SUMS_INIT;
    penstock_snapshot_preset preset = PENSTOCK_SNAPSHOT_PRESET_INIT;
    char room[64] = {0};
    penstock_text place = {room, sizeof(room), 0};
    uint64_t digest = 0;
    REFUSED(penstock_snapshot_add_group(snapshot, "a", &error));
    REFUSED(penstock_snapshot_add_link(snapshot, "a", "/b", &error));
    REFUSED(penstock_snapshot_add_external_link(snapshot, "a", "b.hdf5", "/b", &error));
    REFUSED(penstock_snapshot_add_dataset(snapshot, &dataset, &error));
    REFUSED(penstock_snapshot_add_values(snapshot, &dataset, NULL, 0, &error));
    REFUSED(penstock_snapshot_add_cells(snapshot, &cells, NULL, 0, &error));
    REFUSED(penstock_snapshot_count_cells(snapshot, &cells, NULL, 0, &sums, &error));
    REFUSED(penstock_snapshot_sort_by_cells(snapshot, &cells, NULL, 0, &error));
    REFUSED(penstock_snapshot_sort_and_count(snapshot, &cells, NULL, 0, &sums, &error));
    REFUSED(penstock_snapshot_add_counted_cells(snapshot, &error));
    REFUSED(penstock_snapshot_set_attribute(snapshot, "/", &attribute, &error));
    REFUSED(penstock_snapshot_use_preset(snapshot, &preset, &error));
    REFUSED(penstock_snapshot_use_stream(snapshot, NULL, &error));
    REFUSED(penstock_snapshot_write(snapshot, NULL, 0, NULL, &error));
    REFUSED(penstock_snapshot_digest(snapshot, &digest, &error));
    REFUSED(penstock_snapshot_begin(snapshot, NULL, &error));
    REFUSED(penstock_snapshot_place(snapshot, &place, &error));
    REFUSED(penstock_snapshot_commit(snapshot, &error));
    penstock_snapshot_abandon(snapshot);
    penstock_snapshot_free(snapshot);
    CHECK(digest == 0 && room[0] == 0 && sums.totals == NULL);
}

static void what_a_restart_has(penstock_restart* restart) {
    penstock_restart_field field = PENSTOCK_RESTART_FIELD_INIT;
    penstock_snapshot_attribute attribute = PENSTOCK_SNAPSHOT_ATTRIBUTE_INIT;
    char room[64] = {0};
    penstock_text text = {room, sizeof(room), 0};
    uint64_t shape[PENSTOCK_MOST_DIMENSIONS], rank = 0, generation = 0;
    int32_t found = 7;
    REFUSED(penstock_restart_set_field(restart, &field, &error));
    REFUSED(penstock_restart_set_attribute(restart, &attribute, &error));
    REFUSED(penstock_restart_clear(restart, &error));
    REFUSED(penstock_restart_use_stream(restart, NULL, &error));
    REFUSED(penstock_restart_find(restart, &found, &error));
    REFUSED(penstock_restart_stored(restart, "x", shape, &rank, &text, &error));
    REFUSED(penstock_restart_get_numbers(restart, "x", "uint64", &rank, sizeof(rank), &error));
    REFUSED(penstock_restart_get_text(restart, "x", &text, &error));
    REFUSED(penstock_restart_generation(restart, &generation, &error));
    CHECK(found == 0 && rank == 0 && generation == 0 && room[0] == 0);
}

static void moves_of_a_restart(penstock_restart* restart) {
    char room[64] = {0};
    penstock_text text = {room, sizeof(room), 0};
    uint64_t count = 0, coverage = 0, digest = 0;
    uint32_t* sums = NULL;
    REFUSED(penstock_restart_write(restart, NULL, &error));
    REFUSED(penstock_restart_read(restart, NULL, &error));
    REFUSED(penstock_restart_digest(restart, &digest, &error));
    REFUSED(penstock_restart_begin(restart, NULL, &text, &error));
    REFUSED(penstock_restart_move(restart, &sums, &count, &coverage, &error));
    REFUSED(penstock_restart_commit(restart, NULL, 0, 0, NULL, &error));
    REFUSED(penstock_restart_abandon(restart, &error));
    REFUSED(penstock_restart_read_found(restart, &text, NULL, &error));
    REFUSED(penstock_restart_pass_over(restart, "wrong", &error));
    penstock_restart_free(restart);
    CHECK(sums == NULL && count == 0 && room[0] == 0);
}

static void tests(void) {
    penstock_context* context = made_context(0);
    void* const wrong[] = {NULL, context};
    for (int i = 0; i < 2; ++i) {
        words = i == 0 ? "penstock_history is null; pass a valid pointer" : "this handle is no penstock_history; pass";
        definitions_of_a_history(wrong[i]);
        steps_of_a_history(wrong[i]);
        words =
            i == 0 ? "penstock_snapshot is null; pass a valid pointer" : "this handle is no penstock_snapshot; pass";
        a_snapshot(wrong[i]);
        words = i == 0 ? "penstock_restart is null; pass a valid pointer" : "this handle is no penstock_restart; pass";
        what_a_restart_has(wrong[i]);
        moves_of_a_restart(wrong[i]);
    }
    penstock_buffer_free(device_buffer(context, 64)); /* the context is as it was */
    penstock_context_destroy(context);
}

int main(int count, char** arguments) {
    static const char* const leaves[] = {NULL};
    return run_in_folder(count, arguments, &tests, leaves);
}
