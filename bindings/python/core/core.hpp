// What the files of the module penstock._core share. python/shared/binding.hpp has what all Python modules share.
#pragma once

#include "python/shared/binding.hpp"

namespace penstock::python {

nb::dict plan_to_dict(const Plan& plan);
nb::dict error_to_dict(const ErrorInfo& info);

void bind_array(nb::module_& module);
void bind_errors(nb::module_& module);
void bind_buffer(nb::module_& module);
void bind_transfer(nb::module_& module);
void bind_file(nb::module_& module);
void bind_new_file(nb::module_& module);
void bind_context(nb::module_& module);
void bind_stamp(nb::module_& module);
void bind_profile(nb::module_& module);
void bind_table(nb::module_& module);
void bind_small_read(nb::module_& module);
void bind_header(nb::module_& module);
void bind_plain_hdf5(nb::module_& module);
void bind_part(nb::module_& module);
void bind_parts(nb::module_& module);
void bind_small_load(nb::module_& module);
void bind_row_reader(nb::module_& module);
void bind_boxes(nb::module_& module);
void bind_decode(nb::module_& module);
void bind_encode(nb::module_& module);
void bind_device_cache(nb::module_& module);
void bind_device_calls(nb::module_& module);
void bind_history(nb::module_& module);
void bind_snapshot(nb::module_& module);
void bind_restart(nb::module_& module);
void bind_dlpack(nb::module_& module);
void bind_dlpack_export(nb::module_& module);

}  // namespace penstock::python
