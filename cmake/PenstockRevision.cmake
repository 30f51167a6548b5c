# Writes HEADER with the git revision of SOURCE, empty where SOURCE is no checkout of its own. Run at each build
# (cmake -DSOURCE=... -DHEADER=... -P), so that a result names the code that made it; the file is touched only when the
# revision is another one.
set(revision "")
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE
                ERROR_QUIET)
file(REAL_PATH ${SOURCE} source)
if("${top}" STREQUAL "${source}")
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty OUTPUT_VARIABLE revision
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define PENSTOCK_REVISION \"@revision@\"\n" @ONLY)
