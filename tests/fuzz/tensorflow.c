/* Fuzz: what is read of TensorFlow's files. The first byte says as what the rest is taken: a checkpoint's index (which
 * must come out the same when it is written and read again), Snappy, or a frozen graph, whose signature is flattened
 * and imported. */
#define _GNU_SOURCE
#include "compiler/import/tensorflow/tf_table.h"
#include "tests/fuzz/signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_table(ty_bytes file)
{
    ty_arena arena;
    tf_table t, again;
    ty_arena_init(&arena);
    if (tf_table_read(file, &arena, &t, NULL) == 0) {
        const uint8_t **block = TY_NEW_ARRAY(&arena, const uint8_t *, t.n_blocks);
        for (size_t i = 0; i < t.n_blocks; i++)
            block[i] = t.block[i].data;
        ty_bytes written = tf_table_write(&t, block, &arena);
        if (tf_table_read(written, &arena, &again, NULL) < 0 || again.n_rows != t.n_rows)
            abort();
        for (size_t i = 0; i < t.n_rows; i++)
            if (again.row[i].value.n != t.row[i].value.n || again.row[i].key.n != t.row[i].key.n)
                abort();
    }
    ty_arena_fini(&arena);
}

static void unpack(ty_bytes in)
{
    ty_arena arena;
    ty_bytes out;
    ty_arena_init(&arena);
    tf_snappy_read(in, &arena, &out);
    ty_arena_fini(&arena);
}

static void read_graph(ty_bytes file)
{
    char path[64];
    tf_file *f;
    int fd = memfd_create("fuzz.pb", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, file.data, file.n) == (ssize_t)file.n) {
        ty_error err = {0};
        if (tf_open(path, NULL, &f, &err) == 0) {
            signature_import(f, tf_chosen_signature(f), false);
            tf_close(f);
        } else if (!err.message[0])
            abort();
    }
    if (fd >= 0)
        close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const takes[])(ty_bytes) = {read_table, unpack, read_graph, read_graph};
    if (n > 1)
        takes[data[0] % 4]((ty_bytes){data + 1, n - 1});
    return 0;
}
