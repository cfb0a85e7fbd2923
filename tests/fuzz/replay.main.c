/* Runs a fuzz target over files and folders of inputs, without a fuzzer: NAME PATH... Prints what it runs, so that
 * after a crash the last line names the culprit; ends with the count. */
#include "base/file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_INPUT_BYTES = 64 << 20 };
static int n_run;

static int replay_file(const char *path)
{
    ty_buf input;
    ty_buf_init(&input, MAX_INPUT_BYTES);
    ty_error err = {0};
    if (ty_file_read(path, &input, &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    printf("%s\n", path);
    fflush(stdout);
    /* A copy of the exact size, so that AddressSanitizer sees a read past the end. */
    uint8_t *exact = malloc(input.len ? input.len : 1);
    for (size_t i = 0; i < input.len; i++)
        exact[i] = (uint8_t)input.data[i];
    LLVMFuzzerTestOneInput(exact, input.len);
    free(exact);
    ty_buf_fini(&input);
    n_run++;
    return 0;
}

static int replay(const char *path)
{
    if (!ty_file_is_folder(path))
        return replay_file(path);
    ty_arena arena;
    ty_arena_init(&arena);
    ty_file_entry *entries;
    size_t n_entries;
    ty_error err = {0};
    int rc = ty_file_list(path, &arena, &entries, &n_entries, &err);
    if (rc < 0)
        fprintf(stderr, "%s\n", err.message);
    for (size_t i = 0; i < n_entries && rc == 0; i++)
        rc = replay(ty_arena_printf(&arena, "%s/%s", path, entries[i].name));
    ty_arena_fini(&arena);
    return rc;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (replay(argv[i]) < 0)
            return 1;
    printf("%d inputs\n", n_run);
    return n_run > 0 ? 0 : 1;
}
