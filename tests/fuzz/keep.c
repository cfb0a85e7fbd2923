/* A kept index of small data: a file that is none, or one whose parts are changed and whose checksums are right. */
#include "base/entries.h"
#include "base/file.h"
#include "base/log.h"
#include "container/input/dataset.h"
#include "container/input/keep.h"
#include "container/input/map/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { FIELDS = 3, LOOK = 50 };

static char folder[64], cache[80], data[80];

/* Reads all that it has, whatever it is. */
static bool open_and_read(bool keeps)
{
    static ty_map_spec words = {.field = "word", .scale = 1, .way = TY_MAP_VOCABULARY, .n_oov = 1};
    static ty_map_spec scaled = {.field = "v", .scale = 1, .normalize = TY_NORMALIZE_STANDARD};
    ty_arena a;
    ty_field fields[FIELDS] = {ty_field_make("n"), ty_field_make("word"), ty_field_make("v")};
    const char *path = data;
    ty_data_source src = {.paths = &path, .n_paths = 1, .fields = fields, .n_fields = FIELDS, .n_threads = 1};
    src.keep.folders = keeps ? cache : NULL;
    src.skip_bad = true;
    fields[0].dtype_given = true;
    fields[0].dtype = TY_I32;
    ty_arena_init(&a);
    ty_dataset *ds = NULL;
    bool is_open = ty_map_new(&words, &a, &fields[1].map, NULL) == 0 &&
                   ty_map_new(&scaled, &a, &fields[2].map, NULL) == 0 && ty_dataset_open(&src, &ds, NULL) == 0;
    for (int i = 0; is_open && i < ds->n_fields; i++) {
        char place[512], *row = malloc(ds->field[i].row_bytes + 1);
        for (int64_t k = 0; row && k < ds->n_samples && k < LOOK; k++) {
            ty_dataset_read(ds, i, &k, 1, row, NULL);
            ty_dataset_place(ds, i, k, place, sizeof place);
        }
        free(row);
    }
    if (is_open)
        ty_dataset_close(ds);
    ty_arena_fini(&a);
    return is_open;
}

static void leave(void)
{
    ty_file_remove_tree(folder, NULL);
}

/* The file that opening keeps. */
static void kept_path(char *out, size_t n)
{
    ty_arena a;
    ty_entry *entry;
    ty_arena_init(&a);
    if (ty_entries_list(cache, &a, &entry) != 1)
        abort();
    snprintf(out, n, "%s", entry->path);
    ty_arena_fini(&a);
}

static void begin(char *path, size_t n, ty_keep_file *whole)
{
    snprintf(folder, sizeof folder, "/tmp/ty-keep-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    atexit(leave);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(data, sizeof data, "%s/a.jsonl", folder);
    FILE *f = fopen(data, "w");
    for (int i = 0; f && i < 40; i++)
        fprintf(f, "{\"n\": %s%d, \"word\": \"w%d\", \"v\": [%d, 2]}\n", i == 7 ? "none" : "", i, i % 5, i);
    if (!f || fclose(f) != 0)
        abort();
    ty_log_set_level(TY_LOG_QUIET);
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    if (!open_and_read(true))
        abort();
    kept_path(path, n);
    if (ty_keep_open(path, NULL, whole, NULL) != 1)
        abort();
}

/* Bytes 1 to 3: which part, and where; the others replace what is there, or are added behind it. */
static void write_changed(const char *path, const ty_keep_file *whole, const uint8_t *bytes, size_t n)
{
    ty_buf parts[TY_KEEP_PARTS];
    ty_keep_piece piece[TY_KEEP_PARTS];
    ty_keep_part part[TY_KEEP_PARTS];
    for (int i = 0; i < TY_KEEP_PARTS; i++) {
        ty_buf_init(&parts[i], 1 << 20);
        ty_buf_add(&parts[i], whole->part[i], whole->n[i]);
    }
    while (n > 3) {
        ty_buf *b = &parts[TY_KEEP_FACTS + bytes[0] % (TY_KEEP_PARTS - 1)];
        size_t at = b->len ? (bytes[1] | (size_t)(bytes[2] & 0xf0) << 4) % (b->len + 1) : 0, some = bytes[2] % 16;
        some = some < n - 3 ? some : n - 3;
        if (bytes[0] & 0x80 && some == 0)
            b->len = at;
        size_t over = at + some < b->len ? some : b->len - at;
        memcpy(b->data + at, bytes + 3, over);
        ty_buf_add(b, bytes + 3 + over, some - over);
        bytes += 3 + some;
        n -= 3 + some;
    }
    for (int i = 0; i < TY_KEEP_PARTS; i++) {
        piece[i] = (ty_keep_piece){parts[i].data, parts[i].len};
        part[i] = (ty_keep_part){&piece[i], 1};
    }
    if (ty_keep_write(path, part, NULL) < 0)
        abort();
    for (int i = 0; i < TY_KEEP_PARTS; i++)
        ty_buf_fini(&parts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static char path[256];
    static ty_keep_file whole;
    if (!path[0])
        begin(path, sizeof path, &whole);
    if (size == 0)
        return 0;
    if (bytes[0] & 1)
        write_changed(path, &whole, bytes + 1, size - 1);
    else if (ty_file_write(path, bytes + 1, size - 1, 0600, NULL) < 0)
        abort();
    ty_keep_file f;
    if (ty_keep_open(path, NULL, &f, NULL) == 1)
        ty_keep_close(&f);
    open_and_read(true);
    return 0;
}
