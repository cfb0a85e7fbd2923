# What `rootfs` (the image) and `docker/bundle/make` share: choosing files of this Debian for a tree that has no Debian around it.
# Sourced, with pipefail set. Paths are collected in $work/files, by their place behind Debian's links (/lib is usr/lib).
unset LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH GCC_EXEC_PREFIX COMPILER_PATH
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/files"

# add PATH...: a file, and where it is a link, what that leads to.
add() {
    local path place target
    for path; do
        [ -e "$path" ] || { echo "${0##*/}: $path is missing" >&2; exit 1; }
        place=$(realpath "$(dirname "$path")")/$(basename "$path")
        echo "$place" >>"$work/files"
        [ -L "$place" ] || continue
        target=$(readlink "$place")
        [[ $target == /* ]] || target=$(dirname "$place")/$target
        add "$target"
    done
}

# add_of_gcc prog|file NAME...: what gcc itself would use by that name.
add_of_gcc() {
    local kind=$1 name path
    shift
    for name; do
        path=$(gcc "-print-$kind-name=$name")
        add "$path"
    done
}

# The part of gcc that turns C into shared objects and programs, with what it links them with.
add_compiler() {
    add /usr/bin/gcc /usr/bin/as /usr/bin/ld
    add_of_gcc prog cc1 collect2
    add_of_gcc file liblto_plugin.so crti.o crtn.o crt1.o Scrt1.o crtbegin.o crtbeginS.o crtend.o crtendS.o \
        libgcc.a libgcc_s.so libc.so libc_nonshared.a libm.so libmvec.so libpthread.a libdl.a librt.a
    # libc.so, libm.so and libgcc_s.so are scripts of the linker; these are the libraries they name.
    add /lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libmvec.so.1,libgcc_s.so.1} /lib64/ld-linux-x86-64.so.2
}

# gcc's headers, libc's, and of the kernel's those that libc's lead to.
add_headers() {
    dpkg -L "libgcc-$(gcc -dumpversion)-dev" | grep '/include/.*\.h$' >>"$work/files"
    dpkg -L libc6-dev | grep '^/usr/include/.*\.h$' >"$work/headers"
    cat "$work/headers" >>"$work/files"
    { xargs -n 1 gcc -D_GNU_SOURCE -M -x c <"$work/headers" 2>/dev/null || true; } |
        tr -s ' \\' '\n' | grep '^/usr/include/' >>"$work/files"
}

# add_of_mpi: what ranks need that Open MPI, PMIx and UCX open by themselves, and our plug-ins, which lead to the libraries.
# Of Open MPI's components all that TCP and shared memory, direct start and mpirun can come to: no networks whose libraries are
# tens of megabytes (openib, ofi, psm, ucx below MPI), no other launchers, no OpenSHMEM, no MPI-IO, no monitoring.
add_of_mpi() {
    local folder=/usr/lib/x86_64-linux-gnu
    add /usr/local/lib/trainyard/*.so /usr/bin/mpirun /usr/bin/orted
    add $(ls "$folder"/openmpi/lib/openmpi3/mca_*.so | grep -vE '_(ofi|psm2?|openib|ucx|monitoring|slurm|flux|gridengine|simulator)\.so|/mca_(atomic|memheap|scoll|spml|sshmem|io|fs|fbtl|fcoll|sharedfp)_|reachable_netlink')
    add /etc/openmpi/openmpi-mca-params.conf /usr/share/openmpi/help-*.txt
    add "$folder"/pmix2/lib/pmix/*.so "$folder"/pmix2/share/pmix/help-*.txt "$folder"/pmix2/share/pmix-mca-params.conf
    add "$folder"/ucx/libuct_cma.so.0
}

# find_opened PROGRAM...: prints the libraries that our programs open only when they need them: whatever name of one they
# carry and this Debian has. NVIDIA's are the host's.
find_opened() {
    grep -aohE 'lib[a-z0-9_+-]+\.so\.[0-9]+' "$@" | grep -vE '^lib(cuda|nv|cublas|cudnn|nccl)' | sort -u >"$work/opened"
    ldconfig -p | awk 'NR == FNR {wanted[$1]; next} $1 in wanted && /x86-64/ && !seen[$1]++ {print $NF}' "$work/opened" -
}

# find_needed: prints the libraries that the files named on standard input lead to. Linker scripts and archives have none.
find_needed() {
    { xargs -n 1 ldd 2>/dev/null || true; } | grep -o '/[^ ]*\.so[^ :]*' | sort -u
}

# find_packages: prints the packages that the files in $work/files came from. The packages' lists name a file /lib/... that
# lies in /usr/lib/....
find_packages() {
    local list package
    for list in /var/lib/dpkg/info/*.list; do
        package=$(basename "$list" .list)
        sed -E -e 's,^/(bin|sbin|lib|lib64)/,/usr/\1/,' -e "s,^,${package%%:*} ," "$list"
    done | awk 'NR == FNR {wanted[$1]; next} $2 in wanted {print $1}' "$work/files" - | sort -u
}

# copy_files OUT: the files to their places under OUT, with links /bin, /lib and so on as Debian has them.
copy_files() {
    sort -u -o "$work/files" "$work/files"
    mkdir -p "$1"
    cp -a /bin /sbin /lib /lib64 "$1"
    sed 's,^/,,' "$work/files" | tar -C / -c --no-recursion -T - | tar -C "$1" -x
}

# copy_licences DOC PACKAGE...: their copyright files, and the texts that these refer to.
copy_licences() {
    local doc=$1 package
    shift
    for package; do
        install -D -m 644 "/usr/share/doc/$package/copyright" "$doc/doc/$package/copyright"
    done
    cp -a /usr/share/common-licenses "$doc/"
}
