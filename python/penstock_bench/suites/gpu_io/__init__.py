"""The suite `gpu-io`: requests that threads of the device make by themselves."""
