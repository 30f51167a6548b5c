#!/bin/sh
# System packages for building and testing Penstock on Debian and Ubuntu. Installs what is missing when run as root;
# otherwise stops with the exact line to run. Safe to run again: does nothing when all is there.
#   tools/setup.sh          compiler, Python headers, liburing, libaio, and libraries that decompress
#   tools/setup.sh site     the same and Doxygen
#   tools/setup.sh test     the same, GoogleTest, h5dump and ncdump; as root, file systems that tests mount as well
set -eu

python=${PYTHON:-python3}
packages=""
need() { # need PACKAGE TEST...: adds PACKAGE unless TEST succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || packages="$packages $package"
}
header() { echo "#include <$1>" | g++ -E -x c++ - ; }
python_headers() {
    "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))'
}
python_recent() { "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; }

if ! command -v "$python" >/dev/null; then
    packages="$packages python3 python3-venv python3-dev"
else
    python_recent || {
        echo "Penstock needs Python 3.10 or newer, and $python is older: name another, as in" >&2
        echo "  make build PYTHON=python3.12" >&2
        exit 1
    }
    need python3-venv "$python" -c 'import ensurepip, venv'
    need python3-dev python_headers
fi
need g++ command -v g++
need git command -v git
need liburing-dev header liburing.h
need libaio-dev header libaio.h
need libdeflate-dev header libdeflate.h
need libzstd-dev header zstd.h
need liblz4-dev header lz4.h
need libbz2-dev header bzlib.h
need libisal-dev header isa-l/igzip_lib.h
if [ "${1:-}" = site ]; then need doxygen command -v doxygen; fi
if [ "${1:-}" = test ]; then
    need libgtest-dev header gtest/gtest.h
    need hdf5-tools command -v h5dump
    need netcdf-bin command -v ncdump
    if [ "$(id -u)" = 0 ]; then # a user who may not mount does without them: the tests that mount are skipped
        PATH=$PATH:/usr/sbin:/sbin
        need util-linux command -v losetup
        need mount command -v mount
        need e2fsprogs command -v mkfs.ext4
        need xfsprogs command -v mkfs.xfs
        need btrfs-progs command -v mkfs.btrfs
    fi
fi

[ -n "$packages" ] || exit 0
line="apt-get update && apt-get install -y --no-install-recommends$packages"
if ! command -v apt-get >/dev/null; then
    echo "some system packages are missing, and there is no apt-get here; install them and try again." >&2
    echo "Their names on Debian, which other systems may call otherwise:$packages" >&2
    exit 1
fi
if [ "$(id -u)" != 0 ]; then
    echo "some system packages are missing; run this line and try again:" >&2
    echo "  sudo sh -c '$line'" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
sh -c "$line"
