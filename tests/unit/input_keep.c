/* input_keep.c - what opening found, kept (container/input/keep.h): a data set opened with it says and gives the same
 * as one that was walked; whatever differs, or is damaged, is walked again. */
#include "input_opening.h"

#include "base/entries.h"
#include "base/log.h"
#include "container/input/keep.h"
#include "container/input/map/map.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

static char cache[300]; /* beside the files: names with a dot are no data */

static int setup(void **state)
{
    if (files_setup(state) < 0)
        return -1;
    snprintf(cache, sizeof cache, "%s/.cache", files_folder);
    return 0;
}

/* Files that were written just now are not trusted to show it if they are written again. */
static void let_them_age(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
}

static void clear(void)
{
    int n;
    assert_int_equal(ty_entries_clear(cache, &n, NULL), 0);
}

/* Path of the one file of the cache, which is there. */
static const char *the_file(void)
{
    static char path[700];
    ty_arena a;
    ty_entry *entry;
    ty_arena_init(&a);
    assert_int_equal(ty_entries_list(cache, &a, &entry), 1);
    assert_true(entry->is_index);
    snprintf(path, sizeof path, "%s", entry->path);
    ty_arena_fini(&a);
    return path;
}

/* ---- what a data set says ---- */

typedef struct found {
    int rc;
    char said[8192], first_bad[256], last_place[256];
    int64_t n_samples, n_bad;
    uint64_t infos, rows, all, fingerprint;
} found;

/* All fields at once, some samples twice: what is decoded for the first time is checked, and then no more. */
static uint64_t hash_batches(const ty_dataset *ds)
{
    char row[3][8][4096];
    void *out[3] = {row[0], row[1], row[2]};
    uint64_t h = 0;
    for (int64_t k = 0; k < ds->n_samples; k++) {
        int64_t samples[] = {k, ds->n_samples - 1 - k, k};
        ty_error err = {0};
        assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = samples, .n = 3}, out, &err), &err);
        for (int i = 0; i < ds->n_fields; i++)
            h = ty_fnv1a(h, row[i], 3 * ds->field[i].row_bytes);
    }
    return h;
}

static void take(const ty_dataset *ds, found *out)
{
    out->n_samples = ds->n_samples;
    out->n_bad = ds->bad.n;
    snprintf(out->first_bad, sizeof out->first_bad, "%s", ds->bad.first);
    out->infos = hash_fields(ds);
    out->all = hash_batches(ds);
    out->rows = hash_samples(ds);
    out->fingerprint = ds->fingerprint;
    if (ds->n_samples > 0)
        ty_dataset_place(ds, 0, ds->n_samples - 1, out->last_place, sizeof out->last_place);
}

static ty_data_source how(const struct opening_format *f, bool skip, bool keeps)
{
    return (ty_data_source){.format = f->format,
                            .skip_bad = skip,
                            .max_bad = 3,
                            .lenient = true,
                            .keep = {.folders = keeps ? cache : NULL}};
}

static int fields_of(const struct opening_format *f, ty_field *fields)
{
    for (int i = 0; i < f->n_fields; i++) {
        fields[i] = ty_field_make(f->fields[i].name);
        fields[i].max_length = f->fields[i].max_length;
        fields[i].dtype_given = f->fields[i].dtype_given;
        fields[i].dtype = f->fields[i].dtype;
        fields[i].missing_given = i > 0 && f->n_fields == 3;
    }
    return f->n_fields;
}

static ty_kept find(const struct opening_format *f, bool skip, bool keeps, found *out)
{
    ty_field fields[3];
    ty_dataset *ds;
    ty_error err = {0};
    int n = fields_of(f, fields);
    *out = (found){0};
    out->rc = files_open(NULL, fields, n, how(f, skip, keeps), &ds, &err);
    snprintf(out->said, sizeof out->said, "%s", out->rc < 0 ? files_error(&err) : "");
    if (out->rc < 0)
        return (ty_kept){0};
    take(ds, out);
    ty_kept kept = ds->kept;
    kept.differs = kept.differs ? "differs" : NULL; /* the text goes with the data set */
    ty_dataset_close(ds);
    return kept;
}

static void expect_same(const struct opening_format *f, const found *a, const found *b)
{
    if (memcmp(a, b, sizeof *a) == 0)
        return;
    print_error("%s: %d %lld samples, %lld bad, %s %s: %d %lld samples, %lld bad, %s %s\n", f->format, a->rc,
                (long long)a->n_samples, (long long)a->n_bad, a->first_bad, a->said, b->rc, (long long)b->n_samples,
                (long long)b->n_bad, b->first_bad, b->said);
    fail();
}

/* Walked, walked and kept, kept. Returns whether there was something to be kept. */
static bool compare(const struct opening_format *f, bool skip)
{
    found walked, first, second;
    find(f, skip, false, &walked);
    ty_kept one = find(f, skip, true, &first), two = find(f, skip, true, &second);
    expect_same(f, &walked, &first);
    expect_same(f, &walked, &second);
    assert_true(walked.rc < 0 || (one.n_bytes > 0 && one.made_s == 0 && two.n_bytes == 0 && two.made_s > 0));
    return walked.rc == 0;
}

/* ---- cases ---- */

static void kept_is_what_was_walked(void **state)
{
    (void)state;
    for (int i = 0; i < N_FORMATS; i++) {
        drawn = 7;
        ty_buf whole = make(&formats[i]);
        let_them_age();
        assert_true(compare(&formats[i], false));
        assert_true(compare(&formats[i], true));
        clear();
        for (int round = 0; round < 8; round++) {
            ty_buf b = new_buf();
            char name[64];
            put(&b, whole.data, whole.len);
            damage(&b, round % 4);
            snprintf(name, sizeof name, "0-%s", formats[i].name);
            files_put(name, b.data, b.len);
            ty_buf_fini(&b);
            let_them_age();
            compare(&formats[i], false);
            compare(&formats[i], true);
            clear();
        }
        ty_buf_fini(&whole);
        forget(&formats[i]);
    }
}

enum { TFRECORD, RECORDIO, JSON, LIBSVM };

/* Small files of a format, old enough; what they say, walked. */
static const struct opening_format *begin(int which, found *walked)
{
    const struct opening_format *f = &formats[which];
    drawn = 7;
    ty_buf b = make(f);
    ty_buf_fini(&b);
    let_them_age();
    clear();
    find(f, false, false, walked);
    return f;
}

static void what_differs_is_walked(void **state)
{
    (void)state;
    found walked, again;
    const struct opening_format *f = begin(JSON, &walked);
    assert_true(find(f, false, true, &again).n_bytes > 0);
    assert_true(find(f, true, true, &again).made_s == 0); /* another declaration */
    assert_true(find(f, false, true, &again).made_s > 0);

    const char *path = files_path("2-a.jsonl");
    struct timespec then[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
    let_them_age();
    ty_kept kept = find(f, false, true, &again); /* touched */
    assert_true(kept.made_s == 0 && kept.n_bytes > 0 && kept.differs != NULL);
    expect_same(f, &walked, &again);

    FILE *file = fopen(path, "ab");
    fputs("{\"x\": [1, 2, 3], \"n\": 4}\n", file);
    fclose(file);
    let_them_age();
    assert_true(find(f, false, true, &again).made_s == 0); /* longer */
    assert_int_equal(again.n_samples, walked.n_samples + 1);
    found longer = again;
    assert_true(find(f, false, true, &again).made_s > 0);
    expect_same(f, &longer, &again);

    ty_buf bytes;
    ty_buf_init(&bytes, 1 << 22);
    assert_int_equal(ty_file_read(path, &bytes, NULL), 0);
    unlink(path);
    files_put("2-a.jsonl", bytes.data, bytes.len);
    ty_buf_fini(&bytes);
    let_them_age();
    assert_true(find(f, false, true, &again).made_s == 0); /* the same bytes in another file */
    expect_same(f, &longer, &again);
    clear();
    forget(f);
}

static void young_files_are_not_trusted(void **state)
{
    (void)state;
    found walked, again;
    const struct opening_format *f = begin(LIBSVM, &walked);
    ty_buf b = make(f);
    ty_kept kept = find(f, false, true, &again);
    assert_true(kept.is_asked && kept.n_bytes == 0 && kept.made_s == 0);
    let_them_age();
    assert_true(find(f, false, true, &again).n_bytes > 0);
    ty_buf_fini(&b);
    clear();
    forget(f);
}

/* Any byte, and any end: the data are the same, whether the file was taken or not. */
static void damage_is_walked_around(void **state)
{
    (void)state;
    found walked, again;
    const struct opening_format *f = begin(TFRECORD, &walked);
    assert_true(find(f, false, true, &again).n_bytes > 0);
    char path[700];
    snprintf(path, sizeof path, "%s", the_file());
    ty_buf whole;
    ty_buf_init(&whole, 1 << 20);
    assert_int_equal(ty_file_read(path, &whole, NULL), 0);
    int refused = 0, rounds = 0;
    for (size_t at = 0; at < whole.len; at += 1 + at / 9, rounds++) {
        bool is_cut = rounds % 3 == 2;
        whole.data[at] ^= 4;
        assert_int_equal(ty_file_write(path, whole.data, is_cut ? at : whole.len, 0600, NULL), 0);
        whole.data[at] ^= 4;
        ty_kept kept = find(f, false, true, &again);
        expect_same(f, &walked, &again);
        refused += kept.n_bytes > 0;
        assert_true((kept.n_bytes > 0) != (kept.made_s > 0)); /* a byte between the parts counts for nothing */
        assert_int_equal(ty_file_size(path), whole.len);      /* made anew */
    }
    assert_true(refused > rounds / 2);
    ty_buf_fini(&whole);
    clear();
    forget(f);
}

/* Facts that are none, with checksums that are right: whatever comes of it, it ends well. */
static void nonsense_is_bounded(void **state)
{
    (void)state;
    found walked, again;
    const struct opening_format *f = begin(JSON, &walked);
    ty_field fields[3];
    int n_fields = fields_of(f, fields);
    assert_true(find(f, false, true, &again).n_bytes > 0);
    char path[700];
    snprintf(path, sizeof path, "%s", the_file());
    ty_keep_file whole;
    assert_int_equal(ty_keep_open(path, NULL, &whole, NULL), 1);
    for (int round = 0; round < 600; round++) {
        ty_buf parts[TY_KEEP_PARTS];
        ty_keep_piece piece[TY_KEEP_PARTS];
        ty_keep_part part[TY_KEEP_PARTS];
        for (int i = 0; i < TY_KEEP_PARTS; i++) {
            parts[i] = new_buf();
            put(&parts[i], whole.part[i], whole.n[i]);
            if (i > TY_KEEP_KEY && parts[i].len > 0 && (i == 1 + round % 4 || round % 3 == 0))
                damage(&parts[i], (int)draw(4));
            piece[i] = (ty_keep_piece){parts[i].data, parts[i].len};
            part[i] = (ty_keep_part){&piece[i], 1};
        }
        assert_int_equal(ty_keep_write(path, part, NULL), 0);
        for (int i = 0; i < TY_KEEP_PARTS; i++)
            ty_buf_fini(&parts[i]);
        ty_dataset *ds;
        ty_error err = {0};
        if (files_open(NULL, fields, n_fields, how(f, false, true), &ds, &err) < 0)
            continue;
        for (int i = 0; i < ds->n_fields; i++) {
            char *row = malloc(ds->field[i].row_bytes + 1);
            for (int64_t k = 0; k < ds->n_samples && k < 500; k++)
                ty_dataset_read(ds, i, &k, 1, row, NULL);
            free(row);
        }
        ty_dataset_close(ds);
    }
    ty_keep_close(&whole);
    clear();
    forget(f);
}

/* A long file of three numbers a record, for mapping. */
static void put_long(const char *name, void (*add)(ty_buf *, int), size_t bytes)
{
    ty_buf b = new_buf();
    drawn = 7;
    for (int i = 0; b.len < bytes; i++)
        add(&b, i);
    files_put(name, b.data, b.len);
    ty_buf_fini(&b);
}

static void add_number(ty_buf *file, int row)
{
    char text[64];
    snprintf(text, sizeof text, "{\"n\": %d}\n", 1000 + row % 7);
    put_says(file, text);
}

/* Writes into a file that is open and mapped, as a disk would that loses bits: no time tells. */
static void spoil(const char *name, int64_t at, const char *bytes)
{
    int fd = open(files_path(name), O_WRONLY);
    assert_int_equal(pwrite(fd, bytes, strlen(bytes), at), strlen(bytes));
    close(fd);
}

static void what_went_bad_since_is_named(void **state)
{
    static const struct {
        const char *name, *format, *field, *bytes, *says;
        void (*add)(ty_buf *, int);
        int64_t at, from;
    } cases[] = {
        {"b.tfrecord", "tfrecord", "x", "!", "the checksum of its payload does not match", add_example, 600020, 0},
        {"b.jsonl", "jsonl", "n", "!", "", add_number, 12 * 60000 + 7, 0},
        {"b.jsonl", "jsonl", "n", "9", "expected 1000 to 1006", add_number, 12 * 60000 + 6, 0},
        {"b.jsonl", "jsonl", "n", "  ", "no record begins", add_number, 12 * 60000 - 1, 60000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_field field = ty_field_make(cases[i].field);
        ty_dataset *ds;
        ty_error err = {0};
        ty_data_source src = {.keep = {.folders = cache}};
        float x[3];
        int64_t bad = -1;
        field.dtype_given = i > 0;
        field.dtype = TY_I64;
        put_long(cases[i].name, cases[i].add, 1200000);
        let_them_age();
        for (int k = 0; k < 2; k++) {
            assert_ok(files_open(cases[i].name, &field, 1, src, &ds, &err), &err);
            if (k == 0)
                ty_dataset_close(ds);
        }
        assert_true(ds->kept.made_s > 0);
        spoil(cases[i].name, cases[i].at, cases[i].bytes);
        for (int64_t k = cases[i].from; k < ds->n_samples && bad < 0; k++)
            if (ty_dataset_read_all(ds, &(ty_pick){.sample = &k, .n = 1}, (void *[]){x}, &err) < 0)
                bad = k;
        assert_true(bad > 0);
        assert_says(&err, cases[i].says);
        assert_says(&err, "the file has changed since");
        assert_says(&err, cases[i].name);
        ty_entry *entry;
        ty_arena a;
        ty_arena_init(&a);
        assert_int_equal(ty_entries_list(cache, &a, &entry), 0); /* the next opening walks */
        ty_arena_fini(&a);
        ty_dataset_close(ds);
        unlink(files_path(cases[i].name));
    }
}

/* ---- transforms, and those who have other parts ---- */

typedef struct asked {
    char words[1024];
} asked;

static int note_map(void *ctx, ty_map *map, ty_error *err)
{
    asked *a = ctx;
    ty_buf seen;
    (void)err;
    ty_buf_init(&seen, 1 << 20);
    assert_int_equal(ty_map_write_seen(map, &seen), 0);
    size_t n = strlen(a->words);
    snprintf(a->words + n, sizeof a->words - n, "map %zu %llx\n", seen.len,
             (unsigned long long)ty_fnv1a(TY_FNV_START, seen.data, seen.len));
    ty_buf_fini(&seen);
    return 0;
}

static int note_numbers(void *ctx, const char *what, ty_agree_how how_many, int64_t *v, int n, ty_error *err)
{
    asked *a = ctx;
    size_t at = strlen(a->words);
    (void)err;
    snprintf(a->words + at, sizeof a->words - at, "%s %d %d %lld\n", what, (int)how_many, n, (long long)v[0]);
    return 0;
}

/* What transforms have learnt, as it goes with a model. */
static void learnt(const char *name, ty_map_spec *spec, int n, const char *format, asked *told, ty_buf *out,
                   bool *was_kept)
{
    ty_arena a;
    ty_field fields[4];
    ty_dataset *ds;
    ty_error err = {0};
    ty_data_source src = {
        .keep = {.folders = cache}, .format = format, .agree = {.ctx = told, .map = note_map, .numbers = note_numbers}};
    ty_json_writer w;
    ty_arena_init(&a);
    for (int i = 0; i < n; i++) {
        fields[i] = ty_field_make(spec[i].field);
        assert_ok(ty_map_new(&spec[i], &a, &fields[i].map, &err), &err);
    }
    assert_ok(files_open(name, fields, n, src, &ds, &err), &err);
    *was_kept = ds->kept.made_s > 0;
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    for (int i = 0; i < n; i++)
        ty_map_write(fields[i].map, &w, spec[i].field);
    ty_json_close(&w);
    uint64_t h[2] = {hash_samples(ds), ds->fingerprint};
    put(out, h, sizeof h);
    ty_dataset_close(ds);
    ty_arena_fini(&a);
}

static void add_person(ty_buf *file, int row)
{
    char text[128], age[16] = "null";
    if (draw(9))
        snprintf(age, sizeof age, "%u.%u", draw(90), draw(1000));
    snprintf(text, sizeof text, "{\"age\": %s, \"job\": \"%c%u\", \"v\": [%u, %d]}\n", age, 'a' + (char)draw(20),
             draw(9), draw(50), row % 3);
    put_says(file, text);
}

static void transforms_learn_the_same(void **state)
{
    ty_map_spec spec[] = {
        {.field = "age", .scale = 1, .missing = TY_MISSING_MEDIAN, .normalize = TY_NORMALIZE_STANDARD},
        {.field = "job", .scale = 1, .way = TY_MAP_VOCABULARY, .n_oov = 1, .max_size = 30},
        {.field = "v", .scale = 1, .normalize = TY_NORMALIZE_MINMAX},
    };
    (void)state;
    put_long("p.jsonl", add_person, 20000);
    let_them_age();
    asked told[2] = {{""}, {""}};
    ty_buf out[2];
    bool was_kept;
    for (int i = 0; i < 2; i++) {
        out[i] = new_buf();
        learnt("p.jsonl", spec, 3, "jsonlines", &told[i], &out[i], &was_kept);
        assert_int_equal(was_kept, i == 1);
    }
    assert_string_equal(told[0].words, told[1].words);
    assert_true(strlen(told[0].words) > 20);
    assert_int_equal(out[0].len, out[1].len);
    assert_memory_equal(out[0].data, out[1].data, out[0].len);
    ty_buf_fini(&out[0]);
    ty_buf_fini(&out[1]);
    spec[1].max_size = 20; /* another declaration */
    out[0] = new_buf();
    learnt("p.jsonl", spec, 3, "jsonlines", &told[0], &out[0], &was_kept);
    assert_false(was_kept);
    ty_buf_fini(&out[0]);
    clear();
    unlink(files_path("p.jsonl"));
}

/* Others have a larger index: the walk that was kept was over narrower rows. */
static int64_t others_most;

static int widen(void *ctx, const char *what, ty_agree_how how_many, int64_t *v, int n, ty_error *err)
{
    (void)n;
    if (how_many == TY_AGREE_MOST && strcmp(what, "LibSVM's indexes") == 0 && v[0] < others_most)
        v[0] = others_most;
    return note_numbers(ctx, what, how_many, v, n, err);
}

static void others_are_asked_all_the_same(void **state)
{
    (void)state;
    found walked;
    const struct opening_format *f = begin(LIBSVM, &walked);
    static const struct {
        int64_t most;
        bool is_kept;
    } runs[] = {{0, false}, {0, true}, {5000, false}, {5000, true}, {0, false}};
    asked told[5];
    for (int i = 0; i < 5; i++) {
        ty_field fields[3];
        ty_dataset *ds;
        ty_error err = {0};
        ty_data_source src = how(f, false, true);
        int n = fields_of(f, fields);
        told[i].words[0] = 0;
        others_most = runs[i].most;
        src.agree = (ty_agree){.ctx = &told[i], .map = note_map, .numbers = widen};
        assert_ok(files_open(NULL, fields, n, src, &ds, &err), &err);
        assert_int_equal(ds->kept.made_s > 0, runs[i].is_kept);
        assert_int_equal(ds->index.width, runs[i].most ? runs[i].most : walked.n_samples ? ds->index.width : 0);
        ty_dataset_close(ds);
    }
    assert_string_equal(told[0].words, told[1].words);
    assert_string_equal(told[2].words, told[3].words);
    assert_string_equal(told[0].words, told[4].words);
    clear();
    forget(f);
}

/* ---- the folder ---- */

static void limits_hold(void **state)
{
    (void)state;
    found walked;
    const struct opening_format *f = begin(RECORDIO, &walked);
    static const struct {
        int64_t max_bytes, least_us;
        bool is_read_only, is_written, is_too_big;
    } cases[] = {{100, 0, false, false, true},
                 {0, 60000000, false, false, false},
                 {0, 0, true, false, false},
                 {0, 0, false, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_field fields[3];
        ty_dataset *ds;
        ty_error err = {0};
        ty_data_source src = how(f, false, true);
        int n = fields_of(f, fields);
        src.keep.max_bytes = cases[i].max_bytes;
        src.keep.least_us = cases[i].least_us;
        src.keep.is_read_only = cases[i].is_read_only;
        assert_ok(files_open(NULL, fields, n, src, &ds, &err), &err);
        assert_int_equal(ds->kept.n_bytes > 0, cases[i].is_written);
        assert_int_equal(ds->kept.too_big > 0, cases[i].is_too_big);
        ty_dataset_close(ds);
    }
    /* A second one, of other data, and room for one: the first goes. */
    ty_arena a;
    ty_entry *entry;
    ty_arena_init(&a);
    int64_t bytes = ty_file_size(the_file());
    char first[700];
    snprintf(first, sizeof first, "%s", the_file());
    utimensat(AT_FDCWD, first, (struct timespec[2]){{.tv_sec = 1000}, {.tv_sec = 1000}}, 0);
    ty_field fields[3];
    ty_dataset *ds;
    ty_error err = {0};
    ty_data_source src = how(f, true, true);
    src.keep.max_bytes = bytes + bytes / 2;
    int n = fields_of(f, fields);
    assert_ok(files_open(NULL, fields, n, src, &ds, &err), &err);
    assert_true(ds->kept.n_bytes > 0 && strcmp(first, the_file()) != 0);
    ty_dataset_close(ds);
    assert_int_equal(ty_entries_list(cache, &a, &entry), 1);
    const char *described = ty_keep_describe(entry->path, &a);
    assert_non_null(strstr(described, "recordio, 2 files, the first "));
    ty_arena_fini(&a);
    clear();
    forget(f);
}

static void several_at_once(void **state)
{
    (void)state;
    found walked, again;
    const struct opening_format *f = begin(TFRECORD, &walked);
    pid_t child[4];
    for (int i = 0; i < 4; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            found mine;
            for (int k = 0; k < 20; k++) {
                find(f, false, true, &mine);
                if (memcmp(&mine, &walked, sizeof mine) != 0)
                    _exit(1);
                if (k % 5 == 4)
                    unlink(files_path(".cache/data/none")); /* somebody else clears it */
                if (k == 10 && i == 0)
                    clear();
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        waitpid(child[i], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    find(f, false, true, &again);
    assert_true(find(f, false, true, &again).made_s > 0);
    clear();
    forget(f);
}

int main(void)
{
    ty_log_set_level(TY_LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_is_what_was_walked),
        cmocka_unit_test(what_differs_is_walked),
        cmocka_unit_test(young_files_are_not_trusted),
        cmocka_unit_test(damage_is_walked_around),
        cmocka_unit_test(nonsense_is_bounded),
        cmocka_unit_test(what_went_bad_since_is_named),
        cmocka_unit_test(transforms_learn_the_same),
        cmocka_unit_test(others_are_asked_all_the_same),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(several_at_once),
    };
    return cmocka_run_group_tests(tests, setup, files_teardown);
}
