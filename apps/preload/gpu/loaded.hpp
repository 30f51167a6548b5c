// Which libraries the process has loaded: CUDA's, and libpenstock with its own reads and writes.
//
// Asked of the dynamic linker's list, not with the lock under which it runs constructors: a thread that one of those
// waits for may read a file meanwhile.
#pragma once

namespace preload {

bool has_cuda();    // looks
bool knows_cuda();  // has looked, and found it
// Whether code at `address` is libpenstock's: its files are none of the program's.
bool is_of_engine(const void* address);
bool is_in_engine(const void* address);  // the same without a look: false before the engine was seen
// In the child of a fork: from now on the list is read without any lock of the linker. A thread of the parent may have
// had that lock, and does not exist here to give it back.
void read_list_without_lock();

}  // namespace preload
