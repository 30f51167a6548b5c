/* A function of a shared object that device code may call by its name: see docs/gpu.md.
 *
 *     int64_t count_up(penstock_host_call* call) { return (int64_t)call->value + 1; }
 *
 * It is called by several threads of the host at once, and waits for no kernel that calls it. */
#ifndef PENSTOCK_HOST_FUNCTION_H
#define PENSTOCK_HOST_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

typedef struct penstock_host_call {
    uint64_t value;       /* the number that the caller gave beside its argument */
    const void* argument; /* a copy, aligned for any type, and the function's until it returns */
    size_t argument_bytes;
    void* answer;       /* where the function may put bytes for the caller */
    size_t answer_most; /* as many as the caller takes */
    size_t answer_bytes; /* how many it put there; 0 at first */
} penstock_host_call;

/* What it returns is the result that the caller gets. */
typedef int64_t (*penstock_host_function)(penstock_host_call* call);

#endif
