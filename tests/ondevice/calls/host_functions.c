/* A shared object of functions that device code calls by name. */
#include <string.h>

#include "penstock/host_function.h"

/* Answers with the argument backwards; the result is the value and the length added. */
int64_t reversed(penstock_host_call* call) {
    const char* from = call->argument;
    char* to = call->answer;
    size_t bytes = call->argument_bytes < call->answer_most ? call->argument_bytes : call->answer_most;
    for (size_t i = 0; i < bytes; ++i) to[i] = from[bytes - 1 - i];
    call->answer_bytes = bytes;
    return (int64_t)(call->value + call->argument_bytes);
}

/* Uses a function of the C library, so that the object needs that library. */
int64_t length_of_text(penstock_host_call* call) { return (int64_t)strnlen(call->argument, call->argument_bytes); }
